"""Experiment files are read, errors in them are reported with the line, and arms become commands."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ExperimentError
from experiments.matrix import Experiment, plan_runs, read_experiment

WRONG: list[dict[str, str]] = yaml.safe_load(Path(__file__).with_name("wrong_experiments.yaml").read_text())


def experiment(*arms: dict[str, Any], **fields: Any) -> Experiment:
    return Experiment.model_validate({"about": "x", "verb": "train", "repeats": 1, "arms": list(arms), **fields})


@pytest.mark.parametrize("row", WRONG, ids=lambda row: row["case"])
def test_an_error_in_a_file_is_reported_with_its_line(tmp_path: Path, row: dict[str, str], messages) -> None:
    (tmp_path / "mine.yaml").write_text(row["file"])
    with messages.raises(ExperimentError):
        read_experiment(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("name", ["none.yaml", "modles"])
def test_a_missing_experiment_is_reported(name: str, messages) -> None:
    with messages.raises(ExperimentError):
        read_experiment(name)


def test_the_settings_of_an_arm_override_shared_ones() -> None:
    shared = {"hidden": 16, "learning_rate": "8e-3", "pip": True, "word-rate": 0.0}
    arm = {"name": "A b", "slow": [1, 2.5], "settings": {"hidden": 8, "pip": False, "similarity": ["a", "b"]}}
    (run,) = plan_runs(experiment(arm, settings=shared, data="d.h5"), Path("out"))
    place = "train --local --nodes 2 --slow 1:2.5"
    rest = "--seed 1 --output out/a-b/1 --data d.h5"
    settings = "--hidden 8 --learning-rate 8e-3 --word-rate 0.0 --similarity a b"
    assert run.words == [*place.split(), *settings.split(), *rest.split()]


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        ({"ranks": 3}, "--local --nodes 3"),
        ({"slow": [1, 1]}, "--local --nodes 2"),
        ({"deployment": "mine"}, "--deployment mine"),
    ],
)
def test_an_arm_names_its_place(arm: dict[str, Any], words: str) -> None:
    (run,) = plan_runs(experiment({"name": "a", **arm}), Path("out"))
    assert run.words == ["train", *words.split(), "--seed", "1", "--output", "out/a/1"]


@pytest.mark.parametrize("given", [["--data", "e.h5"], ["--input", "a.csv", "b.csv"], ["--max-dollars", "3"]])
def test_data_of_the_command_line_replaces_that_of_the_file(given: list[str]) -> None:
    (run,) = plan_runs(experiment({"name": "a", "ranks": 1}, input="a.txt"), Path("out"), given=given)
    source = ["--input", "a.txt"] if given[0] == "--max-dollars" else []
    assert run.words[-len(source + given) :] == [*source, *given]
    assert run.words.count("--input") == (given[0] != "--data")


@given(arms=st.integers(1, 6), repeats=st.integers(1, 5))
def test_arms_alternate_and_each_run_has_its_own_folder_and_seed(arms: int, repeats: int) -> None:
    made = [{"name": f"arm {number}", "ranks": 1} for number in range(arms)]
    runs = plan_runs(experiment(*made, repeats=repeats), Path("out"))
    assert Counter(run.arm.name for run in runs) == {arm["name"]: repeats for arm in made}
    for end in range(len(runs)):
        counts = Counter(run.arm.name for run in runs[:end])
        assert max(counts.values(), default=0) - min((counts[f"arm {each}"] for each in range(arms)), default=0) <= 1
    assert len({run.folder for run in runs}) == len(runs)
    assert all(int(run.words[run.words.index("--seed") + 1]) == run.repeat for run in runs)


def test_only_the_named_arms_run(messages) -> None:
    both = experiment({"name": "a", "ranks": 1}, {"name": "b", "ranks": 1})
    assert [run.arm.name for run in plan_runs(both, Path("out"), names=["b"])] == ["b"]
    with messages.raises(ExperimentError):
        plan_runs(both, Path("out"), names=["c"])
