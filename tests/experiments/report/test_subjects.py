"""Subjects of a report: the runs, experiments and datasets in folders."""

from pathlib import Path

import pytest

from common.errors import ExperimentError
from experiments.report.subjects import find_subjects
from tests.experiments import made_records as records
from tests.experiments.report import examples


def test_a_folder_with_only_counts_is_a_dataset_with_its_name_as_digest(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("a" * 32, "mine", "empty")}
    folders["empty"].mkdir()
    for name in ("a" * 32, "mine"):
        examples.dataset(folders[name])
    found = find_subjects([folders["a" * 32], folders["mine"]])
    assert [(each.folder.name, each.digest) for each in found.data] == [("a" * 32, "a" * 32), ("mine", None)]
    assert not found.subjects
    with pytest.raises(ExperimentError, match="empty"):
        find_subjects(list(folders.values()))


def test_an_unreadable_experiment_is_a_problem_but_its_runs_are_subjects(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text("{}")
    (tmp_path / "arm").mkdir()
    records.write(tmp_path / "arm", records.start(), records.step(1, 101.0))
    found = find_subjects([tmp_path])
    assert (found.experiments, len(found.subjects)) == ([], 1)
    (problem,) = found.problems
    assert "experiment.json is not an experiment file" in problem


def test_a_run_in_a_folder_with_counts_is_a_subject(tmp_path: Path) -> None:
    folder = records.write(examples.dataset(tmp_path / "both"), records.start(), records.step(1, 101.0))
    found = find_subjects([folder])
    assert ([each.folder for each in found.data], len(found.subjects)) == ([folder], 1)
