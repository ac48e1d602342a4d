"""Names and axes of plots, and pages with their plots as they are drawn."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from experiments.report import plots
from experiments.report.plots import HEIGHT, colour_encodings, height_of
from experiments.report.tables import Column, Plot, Table, filled_table
from tests.experiments import made_records as records
from tests.experiments.report import examples
from tests.experiments.report.outline import Outline, html_of

COLUMNS = [Column(key, key, ".0%" if key == "share" else "") for key in ("name", "x", "y", "share")]


def drawn(rows: Sequence[dict[str, Any]], y: str = "y", each: str = "") -> list[str]:
    """Draw lines of a table of these rows."""
    plot = Plot(title="A plot", x="x", y=y, by="name", each=each)
    return [svg for _, svg in plots.drawn(Table(key="a", title="A table", columns=COLUMNS, rows=rows, plots=[plot]))]


def texts(rows: Sequence[dict[str, Any]], y: str = "y") -> list[str]:
    return re.findall("<text[^>]*>([^<]*)<", "".join(drawn(rows, y)))


@pytest.mark.parametrize("count", [2, 6, 8, 12])
def test_lines_differ_in_colour_or_in_dashes(count: int) -> None:
    found = colour_encodings("name", [f"run {number}" for number in range(count)])
    looks = zip(found["color"]["scale"]["range"], map(tuple, found["strokeDash"]["scale"]["range"]), strict=True)
    assert len(set(looks)) == count


@pytest.mark.parametrize(("most", "named"), [(3, ["1", "2", "3"]), (40, ["0", "10", "20", "30", "40"])])
def test_whole_numbers_have_no_decimals(most: int, named: list[str]) -> None:
    found = texts([{"x": at, "y": 0.5} for at in range(1, most + 1)])
    assert found[: len(named)] == named


def test_a_constant_measure_has_a_label_on_its_axis() -> None:
    assert "0.45" in texts([{"x": at, "y": 0.45} for at in (1, 2)])


def test_large_numbers_are_short_and_shares_are_percent() -> None:
    found = texts([{"x": 12_000, "share": 0.5}, {"x": 20_000, "share": 0.75}], "share")
    assert "20k" in found
    assert "80%" in found


@pytest.mark.parametrize(
    ("names", "lines"), [(["a"], 0), (["a", "b"], 1), (list("abcd"), 2), (["m" * 9, "n", "o"], 2), (["m" * 17, "n"], 2)]
)
def test_a_plot_has_room_for_its_legend(names: list[str], lines: int) -> None:
    assert height_of(names) == HEIGHT + 15 * lines


def test_each_name_has_its_own_plot() -> None:
    rows = [{"name": name, "x": x, "y": y} for name, y in (("one", 1.5), ("two", 2.5)) for x in (1.5, 2.5)]
    found = drawn(rows, each="name")
    assert [re.findall("<title[^>]*>([^<]*)<", plot)[0] for plot in found] == ["A plot, one", "A plot, two"]
    assert ["y: 2.5" in plot for plot in found] == [False, True]


def test_a_single_point_is_a_dot_between_lines_and_no_plot_without_a_line() -> None:
    line = [{"name": "line", "x": x, "y": 0.5} for x in range(200)]
    (plot,) = drawn([*line, {"name": "dot", "x": 3.5, "y": 0.75}])
    assert plot.count("<title>x: 3.5; y: 0.75;") == 2  # the invisible line, and its dot
    assert plot.count("<title>") == 3
    dots = [{"name": name, "x": 1, "y": 0.5} for name in ("one", "other")]
    about: Any = {"key": "a", "title": "A table", "plots": [Plot(title="A plot", x="x", y="y", by="name")]}
    tables = [filled_table(rows, COLUMNS, **about)[0] for rows in (dots, line)]
    assert [len(table.plots) for table in tables] == [0, 1]


def test_a_legend_shows_the_look_of_each_line(tmp_path) -> None:
    for name in ("one", "two"):
        examples.training(tmp_path / name)
    page = html_of(tmp_path)
    (plot,) = re.findall(r">Loss by epoch<.*?</svg>", page, re.DOTALL)
    looks = re.findall(r'd="M-[^"]*0L[^"]*0"[^>]*stroke="([^"]*)"[^>]*stroke-width="([^"]*)"', plot)
    assert looks == [("var(--c1)", "2"), ("var(--c2)", "2"), ("#888", "1.8"), ("#888", "4")]


def test_names_with_unprintable_characters_are_escaped_in_plots(tmp_path) -> None:
    letters = "\x01\x1b\ufffe\u2028"
    for name in ("one", "two"):
        folder = examples.training(tmp_path / f"{name}{letters}")
        lines = (folder / "record.jsonl").read_text().replace('"macro_f1"', json.dumps(f"other{letters}"))
        (folder / "record.jsonl").write_text(lines)
    page = html_of(tmp_path)
    outline = Outline(page)
    shown = "".join([*outline.headings, *(cell for row in outline.rows for cell in row)])
    assert not set(letters) & set(shown)


def test_the_validation_loss_is_drawn_only_with_the_training_loss(tmp_path) -> None:
    page = html_of(records.whole(tmp_path / "one"))
    plots = re.findall(r"<title id=[^>]*>(Loss [^<]*)<(.*?)</svg>", page, re.DOTALL)
    assert [title for title, _ in plots] == ["Loss by epoch", "Loss by time"]
    for _, drawn in plots:
        assert [drawn.count(f">{of}<") for of in ("training", "validation")] == [1, 1]


def test_a_page_has_no_external_addresses(tmp_path) -> None:
    page = html_of(examples.training(tmp_path / "one"))
    assert re.findall(r'(?:href|src)="(?!#|data:)', page) == []
    assert "http://" not in page
    assert "https://" not in page
