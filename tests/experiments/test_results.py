"""Results of an experiment are read from the records of its runs."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from bootstrap.cli.learning.experiment import found_result
from common.errors import ExperimentError
from experiments.plans.parts import Arm, Experiment, Text
from experiments.plans.stored import StoredExperiment, read_stored, require_same, write_stored
from experiments.results import read_experiment
from tests.experiments import made_records as records

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("arms.yaml").read_text())


def experiment(*arms: dict[str, Any], **changes: Any) -> Experiment:
    return Experiment.model_validate(
        {"about": "x", "kind": "training", "repeats": 2, "baseline": ["a", "z"], "arms": list(arms), **changes}
    )


def trained(folder: Path, seconds: float, *, ranks: int = 1) -> None:
    start = records.start(world_size=ranks, devices=["CPU"] * ranks)
    ended = {"seconds": seconds, "rows_seen": 1280, "share_of_ideal": 0.9}
    losses = [records.step(step, 101 + step, loss=1.0 - 0.04 * step) for step in range(1, 21)]
    epochs = [records.epoch(1, 105), records.epoch(2, 110)]
    records.write(folder, start, *losses, *epochs, records.tested(111), records.end(112, **ended))


def words(folder: Path, seconds: float, losses: list[float], bytes_a_step: float) -> None:
    judged = [
        records.epoch(number, 101.0 + number, pip_loss=loss, pip_mean_square=loss / 1000)
        for number, loss in enumerate(losses, 1)
    ]
    summary = {"epochs": 2, "samples_per_second": 1280 / seconds, "words_a_row": 100.0, "bytes_a_step": bytes_a_step}
    ended = records.end(120.0, **{"seconds": seconds, "rows_seen": 1280, **summary})
    steps = [records.step(number, 101.0) for number in range(1, 21)]
    records.write(folder, records.start(world_size=1), *steps, *judged, records.tested(119.0), ended)


def results(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    about = {"baseline": ["a", "z"], "repeats": 1, **case.get("experiment", {})}
    write_stored(folder, StoredExperiment(name="mine", experiment=experiment(*case["arms"], **about), cores=2))
    for path, run in case["runs"].items():
        (words if "losses" in run else trained)(folder / path, **run)
    arms = found_result(read_experiment(folder)).content["arms"]
    unknown = (None, {}, [])
    return {
        arm["name"]: {name: arm[name] for name in arm if name not in ("name", "folder") and arm[name] not in unknown}
        for arm in arms
    }


def near(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: near(each) for key, each in value.items()}
    return pytest.approx(value, 1e-4) if isinstance(value, float) else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_arms_are_compared(case: dict[str, Any], tmp_path: Path) -> None:
    assert results(case, tmp_path) == near(case["found"])


def test_preprocessing_is_compared_by_bytes_a_second(tmp_path: Path) -> None:
    arms = [{"name": "a", "local": {"workers": 1}, "share": 0.5}, {"name": "z", "local": {"workers": 2}}]
    about = experiment(*arms, kind="preprocessing", repeats=1)
    write_stored(tmp_path, StoredExperiment(name="mine", experiment=about, cores=2))
    for name, workers, seconds, size in (("a", 1, 10.0, 500), ("z", 2, 12.5, 1000)):
        (tmp_path / name / "1").mkdir(parents=True)
        content = {"seconds": seconds, "bytes": size, "workers": workers}
        (tmp_path / name / "1" / "preprocessing.json").write_bytes(orjson.dumps(content))
    found = {arm.name: arm for arm in read_experiment(tmp_path).arms}
    assert (found["z"].ranks, found["z"].speed_up, found["z"].efficiency) == (2, 1.6, 0.8)
    assert found["a"].settings == {"share": 0.5}
    for damaged, why in (("{}", "lacks the seconds, bytes or workers"), ("[", "cannot read")):
        (tmp_path / "a/1/preprocessing.json").write_text(damaged)
        result = read_experiment(tmp_path)
        assert why in result.problems[0]
        assert [arm.finished for arm in result.arms] == [0, 1]


def test_an_earlier_experiment_with_an_empty_target_is_read(tmp_path: Path) -> None:
    about = experiment({"name": "a", "local": {"ranks": 1}}, {"name": "z", "local": {"ranks": 2}})
    kept = StoredExperiment(name="mine", experiment=about, cores=2)
    content = json.loads(kept.model_dump_json())
    content["experiment"]["target"] = None
    (tmp_path / "experiment.json").write_text(json.dumps(content))
    assert read_stored(tmp_path) == kept
    content["experiment"]["target"] = {"loss": 0.5}
    (tmp_path / "experiment.json").write_text(json.dumps(content))
    with pytest.raises(ExperimentError, match=r"\(experiment\.target: "):
        read_stored(tmp_path)


def test_a_folder_without_a_valid_experiment_is_an_error(tmp_path: Path, messages) -> None:
    with messages.raises(ExperimentError):
        read_experiment(tmp_path)
    (tmp_path / "experiment.json").write_text('{"name": "x", "experiment": {"arms": []}}')
    with pytest.raises(ExperimentError, match=r"experiment\.json is not an"):
        read_experiment(tmp_path)


ALONE: dict[str, Any] = {"name": "a", "local": {"ranks": 1}}
PLAIN = experiment(ALONE, baseline=[])
OTHERS: dict[str, dict[str, Any]] = {
    "name": {"name": "other"},
    "place": {"cores": None},
    "data": {"data": "e"},
    "settings": {"experiment": experiment(ALONE, settings={"epochs": 3}, baseline=[])},
    "text": {"experiment": PLAIN.model_copy(update={"text": Text()})},
    "ranks": {"experiment": experiment({**ALONE, "local": {"ranks": 2}}, baseline=[])},
    "topology": {"experiment": experiment({**ALONE, "topology": "starter"}, baseline=[])},
    "share": {"experiment": PLAIN.model_copy(update={"arms": (Arm.model_validate({**ALONE, "share": 0.5}),)})},
}


@pytest.mark.parametrize("changed", OTHERS)
def test_runs_that_do_not_belong_together_are_not_mixed(tmp_path: Path, changed: str, messages) -> None:
    (tmp_path / "a/1").mkdir(parents=True)
    before = StoredExperiment(name="mine", experiment=PLAIN, cores=2, data="d")
    require_same(before, before.model_copy(update={"data": None}), tmp_path)
    with messages.raises(ExperimentError):
        require_same(before, before.model_copy(update=OTHERS[changed]), tmp_path)


@pytest.mark.parametrize(("earlier", "later"), [(1, 1), (3, 1), (1, 3)])
def test_settings_may_change_only_for_arms_without_runs(tmp_path, earlier, later):
    before, now = (
        StoredExperiment(name="mine", cores=2, experiment=experiment(ALONE, baseline=[], **changes))
        for changes in ({"repeats": earlier}, {"repeats": later, "settings": {"epochs": 3}})
    )
    require_same(before, now, tmp_path)
    (tmp_path / f"a/{max(earlier, later)}").mkdir(parents=True)
    with pytest.raises(ExperimentError, match="no longer in the file"):
        require_same(before, now, tmp_path)
