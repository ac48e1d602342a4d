"""Pages with their plots as they are drawn."""

import json
import re
from pathlib import Path

from experiments.report.writing import report
from tests.experiments import made_records as records
from tests.experiments.report import examples
from tests.experiments.report.outline import Outline


def test_names_with_unprintable_characters_are_escaped_in_plots(tmp_path: Path) -> None:
    letters = "\x01\x1b\ufffe\u2028"
    for name in ("one", "two"):
        folder = examples.training(tmp_path / f"{name}{letters}")
        lines = (folder / "record.jsonl").read_text().replace('"macro_f1"', json.dumps(f"other{letters}"))
        (folder / "record.jsonl").write_text(lines)
    examples.experiment(tmp_path / "made", more=letters)
    labels = {f"good{letters}": 30, "bad": 20}
    examples.dataset(tmp_path / "data", labels={"before": labels, "after": labels})
    page = report([tmp_path], now=0.0).page
    assert "could not be drawn" not in page
    outline = Outline(page)
    shown = "".join([*outline.headings, *(cell for row in outline.rows for cell in row)])
    assert not set(letters) & set(shown)


def test_the_validation_loss_is_drawn_only_with_the_training_loss(tmp_path: Path) -> None:
    page = report([records.whole(tmp_path / "one")], now=0.0).page
    plots = re.findall(r"<title id=[^>]*>(Loss [^<]*)<(.*?)</svg>", page, re.DOTALL)
    assert [title for title, _ in plots] == ["Loss by epoch", "Loss by time"]
    for _, drawn in plots:
        assert [drawn.count(f">{of}<") for of in ("training", "validation")] == [1, 1]


def test_a_page_has_no_external_addresses(tmp_path: Path) -> None:
    page = report([examples.training(tmp_path / "one"), examples.dataset(tmp_path / "data")], now=0.0).page
    assert re.findall(r'(?:href|src)="(?!#|data:)', page) == []
    assert "http://" not in page
    assert "https://" not in page
