"""Subjects of a report, and headings and tables of whole pages: `pages.yaml` lists folders and outlines."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import ExperimentError
from experiments.report.subjects import find_subjects
from experiments.report.writing import report
from tests.experiments import made_records as records
from tests.experiments.report import examples
from tests.experiments.report.outline import Outline

PAGES = yaml.safe_load(Path(__file__).with_name("pages.yaml").read_text())
MADE = {
    "dataset": examples.dataset,
    "experiment": examples.experiment,
    "launched": examples.launched,
    "lines": lambda folder, lines: records.write(folder, *map(records.line, lines)),
    "preprocessings": examples.preprocessings,
    "training": examples.training,
    "words": examples.words,
}


def page(of: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the outline of the page of these folders. `launch` is added to their launches."""
    for name, (kind, about) in ((name, *each.items()) for name, each in of["made"].items()):
        MADE[kind](folder / name, **about)
    for name, changes in of.get("launch", {}).items():
        path = folder / name / "launch.json"
        path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **changes}))
    found = report([folder], now=0.0)
    assert not found.warnings
    return {"summary": dict(found.summary), "page": Outline(found.page).text()}


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("of", PAGES, ids=lambda of: of["about"])
def test_a_page_has_these_headings_and_tables(of, tmp_path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    assert page(of, folder) == {name: of[name] for name in ("summary", "page")}


def test_a_folder_with_only_counts_is_a_dataset_with_its_name_as_digest(tmp_path) -> None:
    folders = {name: tmp_path / name for name in ("a" * 32, "mine", "empty")}
    folders["empty"].mkdir()
    for name in ("a" * 32, "mine"):
        examples.dataset(folders[name])
    found = find_subjects([folders["a" * 32], folders["mine"]])
    assert [(each.folder.name, each.digest) for each in found.data] == [("a" * 32, "a" * 32), ("mine", None)]
    assert not found.subjects
    with pytest.raises(ExperimentError, match="empty"):
        find_subjects(list(folders.values()))


def test_an_unreadable_experiment_is_a_problem_but_its_runs_are_subjects(tmp_path) -> None:
    (tmp_path / "experiment.json").write_text("{}")
    (tmp_path / "arm").mkdir()
    records.write(tmp_path / "arm", records.start(), records.step(1, 101.0))
    found = find_subjects([tmp_path])
    assert (found.experiments, len(found.subjects)) == ([], 1)
    (problem,) = found.problems
    assert "experiment.json is not an" in problem


def test_a_run_in_a_folder_with_counts_is_a_subject(tmp_path) -> None:
    folder = records.write(examples.dataset(tmp_path / "both"), records.start(), records.step(1, 101.0))
    found = find_subjects([folder])
    assert ([each.folder for each in found.data], len(found.subjects)) == ([folder], 1)
