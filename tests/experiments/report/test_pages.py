"""Headings and tables of whole pages: `pages.yaml` lists folders and outlines."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.experiments import made_records as records
from tests.experiments.report import examples
from tests.experiments.report.outline import page_of

PAGES = yaml.safe_load(Path(__file__).with_name("pages.yaml").read_text())
MADE = {
    "experiment": examples.experiment,
    "launched": examples.launched,
    "lines": lambda folder, lines: records.write(folder, *map(records.line, lines)),
    "training": examples.training,
}


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("of", PAGES, ids=lambda of: of["about"])
def test_a_page_has_these_headings_and_tables(of: dict[str, Any], tmp_path: Path) -> None:
    """`launch` is added to the launches of the runs."""
    for name, (kind, about) in ((name, *each.items()) for name, each in of["made"].items()):
        MADE[kind](tmp_path / "results" / name, **about)
    for name, changes in of.get("launch", {}).items():
        path = tmp_path / "results" / name / "launch.json"
        path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **changes}))
    assert page_of(tmp_path / "results").text() == of["page"]
