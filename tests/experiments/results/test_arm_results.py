"""What an experiment found is read from the records of its runs."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from common.errors import ExperimentError
from experiments.plans.kept import Kept, require_same, write_kept
from experiments.plans.parts import Experiment, Target
from experiments.records.runs import read_run
from experiments.results.arm_results import read_experiment
from experiments.results.progress import seconds_to, training_seconds
from experiments.results.word_results import WordResult
from tests.experiments import made_records as records


def experiment(*arms: dict[str, Any], **changes: Any) -> Experiment:
    return Experiment.model_validate(
        {"about": "x", "kind": "training", "repeats": 2, "baseline": ["a", "z"], "arms": list(arms), **changes}
    )


def trained(folder: Path, seconds: float, *, ranks: int = 1, rates: tuple[float, ...] = (), **changes: Any) -> None:
    """A finished run that took so long."""
    start = records.start(
        world_size=ranks, devices=["CPU"] * ranks, config={**records.CONFIG, "sleep": list(rates)}, **changes
    )
    ended = {"seconds": seconds, "rows_seen": 1280, "share_of_ideal": 0.9}
    losses = [records.step(step, 101 + step, loss=1.0 - 0.04 * step) for step in range(1, 21)]
    lines = [
        start,
        *losses,
        records.epoch(1, 105),
        records.epoch(2, 110),
        records.tested(111),
        records.end(112, **ended),
    ]
    records.write(folder, *lines)


def test_arms_are_compared_with_the_baseline_of_their_kind(tmp_path: Path) -> None:
    arms = [
        {"name": "a", "local": {"ranks": 1}},
        {"name": "b", "local": {"ranks": 2}},
        {"name": "many", "local": {"ranks": 4}},
        {"name": "z", "local": {"sleep": [100]}},
        {"name": "y", "local": {"sleep": [100, 100]}},
        {"name": "mixed", "local": {"sleep": [100, 50]}},
        {"name": "later", "local": {"ranks": 1}},
    ]
    write_kept(tmp_path, Kept(name="mine", experiment=experiment(*arms, target={"loss": 0.5}), cores=2, data="d"))
    for repeat, longer in ((1, 0.0), (2, 2.0)):
        trained(tmp_path / "a" / str(repeat), 10 + longer)
        trained(tmp_path / "b" / str(repeat), 5.5 + longer, ranks=2)
        trained(tmp_path / "many" / str(repeat), 5.5 + longer, ranks=4)
    trained(tmp_path / "z/1", 100, rates=(100.0,))
    trained(tmp_path / "y/1", 50, ranks=2, rates=(100.0, 100.0))
    trained(tmp_path / "mixed/1", 80, ranks=2, rates=(100.0, 50.0))
    found = {arm.name: arm for arm in read_experiment(tmp_path).arms}
    a, b, many = found["a"], found["b"], found["many"]
    assert (a.finished, a.ranks, a.remark, a.speed_up, a.efficiency) == (2, 1, "", 1.0, 1.0)
    assert a.seconds == pytest.approx((11.0, 10.0, 12.0))
    assert b.speed_up == pytest.approx((1280 / 5.5 + 1280 / 7.5) / (1280 / 10 + 1280 / 12))
    assert b.efficiency == pytest.approx((b.speed_up or 0) / 2)
    assert b.of_bound == 0.9
    assert b.measures == {"accuracy": 0.85}
    assert a.to_target is not None
    assert (b.target_speed_up, b.target_efficiency) == (1.0, 0.5)
    assert (many.speed_up, many.efficiency) == (b.speed_up, None)
    assert many.remark == "4 ranks on 2 cores: no efficiency"
    assert (found["y"].speed_up, found["y"].efficiency, found["y"].to_target) == (2.0, 1.0, None)
    assert (found["y"].sleeps, found["y"].measures) == (True, {})
    assert found["y"].remark == "emulated GPU speed; 1 of 2 runs finished"
    assert (found["mixed"].speed_up, found["mixed"].efficiency) == (1.25, None)
    assert (found["later"].seconds, found["later"].runs, found["later"].speed_up) == (None, (), None)


def test_an_arm_that_computes_another_model_is_faster_or_slower_but_not_more_efficient(tmp_path: Path) -> None:
    arms = [
        {"name": "a", "local": {"ranks": 1}, "settings": {"hidden": 16}},
        {"name": "z", "local": {"ranks": 2}, "settings": {"hidden": 16, "train_share": 0.5}},
        {"name": "large", "local": {"ranks": 2}, "settings": {"hidden": 64}},
    ]
    write_kept(tmp_path, Kept(name="mine", experiment=experiment(*arms, repeats=1), cores=2))
    for name, seconds, ranks in (("a", 10.0, 1), ("z", 5.0, 2), ("large", 20.0, 2)):
        trained(tmp_path / name / "1", seconds, ranks=ranks)
    found = {arm.name: (arm.speed_up, arm.efficiency) for arm in read_experiment(tmp_path).arms}
    assert found == {"a": (1.0, 1.0), "z": (2.0, 1.0), "large": (0.5, None)}


def test_runs_that_did_not_reach_the_target_are_counted(tmp_path: Path) -> None:
    arms = [{"name": "a", "local": {"ranks": 1}}, {"name": "z", "local": {"sleep": [100]}}]
    kept = Kept(name="mine", experiment=experiment(*arms, repeats=1, target={"loss": 0.1}), cores=2, data="d")
    write_kept(tmp_path, kept)
    trained(tmp_path / "a/1", 10)
    trained(tmp_path / "z/1", 10, rates=(100.0,))
    found = {arm.name: (arm.to_target, arm.remark) for arm in read_experiment(tmp_path).arms}
    assert found == {"a": (None, "0 of 1 run reached the target"), "z": (None, "emulated GPU speed")}


def test_a_loss_is_reached_when_the_mean_of_five_recorded_steps_is_as_low(tmp_path: Path) -> None:
    losses = [0.9, 0.1, 0.9, 0.9, 0.6, 0.4, 0.3, 0.2, 0.1]
    steps = [records.step(2 * number, 100 + number, loss=loss) for number, loss in enumerate(losses, 1)]
    run = read_run(records.write(tmp_path, records.start(), *steps, records.epoch(1, 150, accuracy=0.7)))
    rows = [64 * 2 * number for number in range(1, 10)]
    assert training_seconds(run) == pytest.approx([each / 1200 for each in rows])
    assert seconds_to(run, Target(loss=0.5)) == pytest.approx(rows[7] / 1200)  # 0.9 + 0.6 + 0.4 + 0.3 + 0.2
    assert seconds_to(run, Target(loss=0.01)) is None
    assert seconds_to(run, Target(measure="accuracy", at_least=0.7)) == pytest.approx(640 / 1200)
    assert seconds_to(run, Target(measure="accuracy", at_least=0.71)) is None


def test_a_measure_is_reached_between_the_recorded_steps_beside_the_end_of_its_epoch(tmp_path: Path) -> None:
    slow, quick = {**records.step(5, 101), "rows_per_second": 600.0}, records.step(15, 102)
    run = read_run(records.write(tmp_path, records.start(), slow, records.epoch(1, 101.5, accuracy=0.7), quick))
    seconds = (5 * 64 / 600 + 15 * 64 / 1200) / 2
    assert seconds_to(run, Target(measure="accuracy", at_least=0.7)) == pytest.approx(seconds)


def test_a_resumed_run_counts_what_it_trained_before(tmp_path: Path) -> None:
    run = read_run(
        records.write(
            tmp_path,
            records.start(100),
            records.step(5, 103),
            records.end(104, stopped=True),
            records.start(500, from_step=6),
            {**records.step(16, 505), "rows_per_second": 600.0},
        )
    )
    assert training_seconds(run) == pytest.approx([5 * 64 / 1200, 6 * 64 / 1200 + 10 * 64 / 600])


def test_vectors_of_words_have_their_best_loss_of_any_epoch_and_the_bytes_of_a_step(tmp_path: Path) -> None:
    arms = [{"name": "a", "local": {"ranks": 1}}, {"name": "z", "local": {"ranks": 2}}]
    target = {"measure": "pip_loss", "at_most": 100}
    write_kept(tmp_path, Kept(name="mine", experiment=experiment(*arms, kind="words", target=target), cores=2))
    for repeat, (seconds, *losses) in enumerate([(10.0, 120.0, 90.0, 95.0), (14.0, 90.0, 98.0, 99.0)], 1):
        judged = [
            records.epoch(number, 101.0 + number, pip_loss=loss, pip_mean_square=loss / 1000)
            for number, loss in enumerate(losses, 1)
        ]
        told = {"epochs": 2, "samples_per_second": 1280 / seconds, "words_a_row": 100.0, "bytes_a_step": 500.0 * repeat}
        ended = records.end(120.0, **{"seconds": seconds, "rows_seen": 1280, **told})
        steps = [records.step(number, 101.0) for number in range(1, 21)]
        records.write(
            tmp_path / "a" / str(repeat), records.start(world_size=1), *steps, *judged, records.tested(119.0), ended
        )
    found, without = read_experiment(tmp_path).arms
    assert found.words == WordResult(
        seconds_an_epoch=6.0,
        words_a_second=pytest.approx((12800 + 128000 / 14) / 2),
        pip_loss=90.0,
        pip_mean_square=pytest.approx(0.09),
        loss=pytest.approx(0.3),
    )
    assert found.bytes_a_step == 750.0
    assert found.to_target is not None
    assert (found.to_target.least, found.to_target.most) == pytest.approx((640 / 1200, 1280 / 1200))
    assert (without.words, without.bytes_a_step) == (None, None)


def test_preprocessing_is_compared_by_bytes_a_second(tmp_path: Path) -> None:
    arms = [
        {"name": "a", "local": {"workers": 1}, "share": 0.5},
        {"name": "z", "local": {"workers": 2}},
    ]
    write_kept(tmp_path, Kept(name="mine", experiment=experiment(*arms, kind="preprocessing", repeats=1), cores=2))
    for name, workers, seconds, size in (("a", 1, 10.0, 500), ("z", 2, 12.5, 1000)):
        (tmp_path / name / "1").mkdir(parents=True)
        told = {"seconds": seconds, "bytes": size, "workers": workers}
        (tmp_path / name / "1" / "preprocessing.json").write_bytes(orjson.dumps(told))
    found = {arm.name: arm for arm in read_experiment(tmp_path).arms}
    assert (found["z"].ranks, found["z"].speed_up, found["z"].efficiency) == (2, 1.6, 0.8)
    assert found["a"].settings == {"share": 0.5}
    for damaged, why in (("{}", "lacks the seconds, bytes or workers"), ("[", "cannot be read")):
        (tmp_path / "a/1/preprocessing.json").write_text(damaged)
        result = read_experiment(tmp_path)
        assert why in result.problems[0]
        assert [arm.finished for arm in result.arms] == [0, 1]


def test_a_folder_that_holds_none_or_a_damaged_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"has no experiment\.json; give the --output of"):
        read_experiment(tmp_path)
    (tmp_path / "experiment.json").write_text('{"name": "x", "experiment": {"arms": []}}')
    with pytest.raises(ExperimentError, match=r"experiment\.json is not the file of an experiment of this version"):
        read_experiment(tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "other"}, "holds runs of the experiment 'mine', not of 'other'"),
        ({"cores": None}, "holds runs on this machine"),
        ({"data": "e"}, "holds runs on other data"),
        (
            {"experiment": experiment({"name": "a", "local": {"ranks": 1}}, settings={"epochs": 3}, baseline=[])},
            "holds runs of 'a' with other settings than the file has now",
        ),
    ],
)
def test_runs_that_do_not_go_together_are_not_mixed(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    (tmp_path / "a/1").mkdir(parents=True)
    before = Kept(
        name="mine", experiment=experiment({"name": "a", "local": {"ranks": 1}}, baseline=[]), cores=2, data="d"
    )
    require_same(before, before.model_copy(update={"data": None}), tmp_path)
    with pytest.raises(ExperimentError, match=sentence):
        require_same(before, before.model_copy(update=changes), tmp_path)
