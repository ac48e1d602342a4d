"""The section of an experiment on the report's page."""

from pathlib import Path

import pytest

from experiments.report.writing import report
from tests.experiments.report import examples
from tests.experiments.report.outline import Outline, page_of

pytestmark = pytest.mark.usefixtures("sketched")


def test_an_experiment_has_its_arms_beside_the_baseline_and_the_bound(tmp_path: Path) -> None:
    found = report([examples.experiment(tmp_path / "out")], now=0.0)
    outline = Outline(found.page)
    assert outline.headings[:3] == ["Shoal: more-ranks", "The experiment more-ranks", "Arms"]
    assert {"Time of the arms", "Speed-up", "Share of the bound"} <= set(outline.headings)
    arms = {row[0]: row for row in outline.rows if len(row) > 8 and row[0] in ("1 rank", "1 K80", "later")}
    assert (arms["1 rank"][1], arms["later"][1]) == ("this machine", "-")
    assert arms["1 rank"][-1] == ""
    assert "emulated GPU speed" in arms["1 K80"][-1]
    assert "0 of 2 runs finished" in arms["later"][-1]
    drawn = [row for row in outline.rows if row[2:4] == ["by time, computing", "1.00"]]
    assert drawn == [["1 rank", "1", "by time, computing", "1.00", "100%", "1"]]


def test_vectors_of_words_have_columns_of_their_own(tmp_path: Path) -> None:
    rows = page_of(examples.words(tmp_path)).rows
    heads = next(row for row in rows if "best PIP loss" in row)
    (arm,) = (row for row in rows if len(row) == len(heads) and row[0] == "one")
    wanted = {"an epoch, s": "4.0", "words/s": "12,800", "best PIP loss": "90.00", "sent a step and rank, kB": "2.5"}
    assert wanted.items() <= dict(zip(heads, arm, strict=True)).items()


def test_preprocessings_are_compared_by_cores_and_megabytes_a_line_for_each_share(tmp_path: Path) -> None:
    page = report([examples.preprocessings(tmp_path / "out")], now=0.0).page
    rows = Outline(page).rows
    assert ["arm", "on", "cores", "runs", "time, s", "MB/s", "speed-up", "efficiency"] in rows
    assert ["100% on 2", "this machine", "2", "1", "5.0", "20.0", "2.00", "100%"] in rows
    assert {row[2] for row in rows if len(row) == 6 and row[0].endswith(("on 1", "on 2"))} == {
        "by time, share 0.5",
        "by time, share 1",
    }
    assert "Speed-up by cores" in page
    assert "ranks" not in page.partition("<main>")[2]
