"""Headings and tables of whole pages: `pages.yaml` lists the folders and the expected outlines."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.report.writing import report
from tests.experiments import made_records as records
from tests.experiments.report import examples
from tests.experiments.report.outline import Outline

PAGES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("pages.yaml").read_text())
MADE: dict[str, Callable[..., Path]] = {
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
def test_a_page_has_these_headings_and_tables(of: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    assert page(of, folder) == {name: of[name] for name in ("summary", "page")}
