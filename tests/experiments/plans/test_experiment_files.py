"""Experiment files are read, and errors in them are reported with the line, the field, and what to do."""

from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ExperimentError
from corpus.stream.stream_settings import TOKENISERS
from experiments.plans.experiment_files import config_of, load, names
from experiments.plans.parts import Arm, Experiment, Local, Tokeniser, planned_runs, select_arms
from experiments.plans.stored import StoredExperiment, with_earlier_deployments
from infra import catalog, topology

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
WRONG: list[dict[str, str]] = yaml.safe_load(Path(__file__).with_name("wrong_experiments.yaml").read_text())
HEAD = "about: x\nkind: training\n"


def written(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def test_the_documented_experiments_exist() -> None:
    assert set(names()) == {
        *("losses", "mixed-gpus", "models", "network-size", "preprocessing"),
        *("same-gpus-over-nodes", "strong-scaling", "weak-scaling", "fasttext-adam-sgd"),
        *("embeddings-50", "embeddings-200", "embeddings-characters"),
    }


@pytest.mark.parametrize("name", names())
def test_each_shipped_experiment_is_valid_and_has_a_place_to_run(name: str) -> None:
    found = load(name)
    assert found.name == name
    for arm in found.experiment.arms:
        if arm.topology is not None:
            chosen = topology.load(arm.topology, TOPOLOGIES)
            trains = chosen.training or chosen.managed
            assert chosen.preprocessing if found.experiment.kind == "preprocessing" else trains
        if arm.local and found.experiment.kind == "training":
            assert arm.local.world_size <= 2


@pytest.mark.parametrize("name", ["strong-scaling", "weak-scaling", "same-gpus-over-nodes", "mixed-gpus"])
def test_each_experiment_has_arms_on_gpus_that_aws_still_starts(name: str) -> None:
    arms = [arm for arm in load(name).experiment.arms if arm.topology is not None]
    chosen = [topology.load(arm.topology, TOPOLOGIES) for arm in arms if arm.topology]
    starts = [not any(catalog.find(each).retired for each in topology.instance_types(one)) for one in chosen]
    assert sum(starts) >= 3
    assert not all(starts)


def test_a_file_accepts_the_tokenisers_of_readers() -> None:
    assert set(get_args(Tokeniser)) == set(TOKENISERS)


def test_the_settings_of_an_arm_override_shared_ones(tmp_path: Path) -> None:
    text = f"{HEAD}settings: {{model: lstm, hidden: 16, epochs: 3, learning_rate: 8e-3}}\n"
    arms = "arms:\n  - {name: A, local: {slow: [1, 2.5]}, settings: {hidden: 8}}\n"
    experiment = load(written(tmp_path, text + arms)).experiment
    run = planned_runs(experiment.arms, 2, Path("out"))[1]
    made = config_of(experiment, run, data=Path("d.h5"), local=True)
    assert (made.hidden, made.epochs, made.learning_rate, made.seed) == (8, 3, 0.008, 2)
    assert made.slow == {1: 2.5}
    there = config_of(experiment, run, data=Path("d.h5"), local=False)
    assert there.slow == {}


@pytest.mark.parametrize("row", WRONG, ids=lambda row: row["case"])
def test_an_error_in_a_file_is_reported_with_its_line(tmp_path: Path, row: dict[str, str], messages) -> None:
    with messages.raises(ExperimentError):
        load(written(tmp_path, row["file"]))


@pytest.mark.parametrize("name", ["strong-scalin", "none/of/these.yaml"])
def test_an_unknown_name_suggests_similar_ones(name: str, messages) -> None:
    with messages.raises(ExperimentError):
        load(name)


@given(arms=st.integers(1, 6), repeats=st.integers(1, 5))
def test_arms_alternate_and_each_run_has_its_own_folder(arms: int, repeats: int) -> None:
    made = [Arm(name=f"arm {number}", local=Local(ranks=1)) for number in range(arms)]
    runs = planned_runs(made, repeats, Path("out"))
    assert Counter(run.arm.name for run in runs) == {arm.name: repeats for arm in made}
    for end in range(len(runs)):
        counts = Counter(run.arm.name for run in runs[:end])
        assert max(counts.values(), default=0) - min((counts[arm.name] for arm in made), default=0) <= 1
    assert len({run.folder for run in runs}) == len(runs)


def test_only_the_named_arms_run(messages) -> None:
    experiment = load("losses").experiment
    assert [arm.name for arm in select_arms(experiment, ["ratings"])] == ["ratings"]
    with messages.raises(ExperimentError):
        select_arms(experiment, ["rating"])


def test_the_stored_experiment_has_the_deployments_of_all_commands() -> None:
    experiment = Experiment.model_validate(
        {"about": "x", "kind": "training", "arms": [{"name": each, "local": {"ranks": 1}} for each in "ab"]}
    )
    before = StoredExperiment(name="mine", experiment=experiment, deployments={"a": "one", "b": "two"}, data="digest")
    now = StoredExperiment(name="mine", experiment=experiment, deployments={"b": "three"})
    assert with_earlier_deployments(None, now, ["b"]) == now
    both = with_earlier_deployments(before, now, ["b"])
    assert (both.deployments, both.data) == ({"a": "one", "b": "three"}, "digest")
