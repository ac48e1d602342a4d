"""Names and axes of plots, and pages with their plots as they are drawn."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from experiments.report import plots
from experiments.report.drawing import HEIGHT
from experiments.report.plots import colour_encodings, height_of
from experiments.report.tables import Column, Plot, Table, TableSpec
from experiments.report.writing import report
from tests.experiments import made_records as records
from tests.experiments.report import examples
from tests.experiments.report.outline import Outline

LONG = "a name that no plot has the place for, "


def drawn(rows: Sequence[dict[str, Any]], **about: Any) -> list[str]:
    """Draw the plots of a table of these rows, with the columns `name`, `x`, `y` and `share`."""
    columns = [Column(key=key, head=key, form=".0%" if key == "share" else "") for key in ("name", "x", "y", "share")]
    table = Table(key="a", title="A table", columns=columns, rows=rows, plots=[Plot(title="A plot", **about)])
    return [svg for _, svg in plots.drawn(table)]


def texts(rows: Sequence[dict[str, Any]], **about: Any) -> list[str]:
    return re.findall("<text[^>]*>([^<]*)<", "".join(drawn(rows, **about)))


def bars(*rows: tuple[str, float]) -> list[str]:
    return texts([{"name": name, "x": x} for name, x in rows], kind="bars", x="x", y="name")


def test_long_names_of_bars_keep_their_ends() -> None:
    found = bars((f"{LONG}1", 1), (f"{LONG}2", 1), ("short", 1))
    assert [each for each in found if "a" in each or "o" in each] == [
        "a name tha…ace for, 1",
        "a name tha…ace for, 2",
        "short",
    ]


@pytest.mark.parametrize("most", [0.003, 0.2, 30.0, 150.0, 5400.0])
@pytest.mark.parametrize("letters", [5, 30])
def test_an_axis_has_a_number_at_each_tick_with_names_of_any_length(letters: int, most: float) -> None:
    (plot,) = drawn([{"name": "m" * letters, "x": most}], kind="bars", x="x", y="name")
    assert re.findall('<text[^>]* opacity="0"[^>]*>([^<]*)<', plot) == []


@pytest.mark.parametrize("count", [2, 6, 8, 12])
def test_lines_differ_in_colour_or_in_dashes(count: int) -> None:
    found = colour_encodings("name", [f"run {number}" for number in range(count)])
    looks = zip(found["color"]["scale"]["range"], map(tuple, found["strokeDash"]["scale"]["range"]), strict=True)
    assert len(set(looks)) == count


@pytest.mark.parametrize(("most", "named"), [(3, ["1", "2", "3"]), (40, ["0", "10", "20", "30", "40"])])
def test_whole_numbers_have_no_decimals(most: int, named: list[str]) -> None:
    found = texts([{"x": at, "y": 0.5} for at in range(1, most + 1)], kind="lines", x="x", y="y")
    assert found[: len(named)] == named


def test_a_constant_measure_has_a_label_on_its_axis() -> None:
    assert "0.45" in texts([{"x": at, "y": 0.45} for at in (1, 2)], kind="lines", x="x", y="y")


def test_large_numbers_are_short_and_shares_are_percent() -> None:
    found = texts([{"x": 12_000, "share": 0.5}, {"x": 20_000, "share": 0.75}], kind="points", x="x", y="share")
    assert "20k" in found
    assert "80%" in found


@pytest.mark.parametrize(
    ("names", "lines"), [(["a"], 0), (["a", "b"], 1), (list("abcd"), 2), (["m" * 9, "n", "o"], 2), (["m" * 17, "n"], 2)]
)
def test_a_plot_has_room_for_its_legend(names: list[str], lines: int) -> None:
    assert height_of(names) == HEIGHT + 15 * lines


def test_each_name_has_its_own_plot() -> None:
    rows = [{"name": name, "x": x, "y": y} for name, y in (("one", 1.5), ("two", 2.5)) for x in (1.5, 2.5)]
    found = drawn(rows, kind="lines", x="x", y="y", each="name")
    assert [re.findall("<title[^>]*>([^<]*)<", plot)[0] for plot in found] == ["A plot, one", "A plot, two"]
    assert ["y: 2.5" in plot for plot in found] == [False, True]


def test_a_single_point_is_a_dot_between_lines_and_no_plot_without_a_line() -> None:
    line = [{"name": "line", "x": x, "y": 0.5} for x in range(200)]
    (plot,) = drawn([*line, {"name": "dot", "x": 3.5, "y": 0.75}], kind="lines", x="x", y="y", by="name")
    assert plot.count("<title>x: 3.5; y: 0.75;") == 2  # the invisible line, and its dot
    assert plot.count("<title>") == 3
    spec = TableSpec(
        key="a",
        title="A table",
        rows=lambda rows: rows,
        columns=[Column(key=key, head=key) for key in ("name", "x", "y")],
        plots=[Plot(title="A plot", kind="lines", x="x", y="y", by="name")],
    )
    dots = [{"name": name, "x": 1, "y": 0.5} for name in ("one", "other")]
    assert [len(spec.build(rows).plots) for rows in (dots, line)] == [0, 1]


def test_a_legend_shows_the_look_of_each_line(tmp_path) -> None:
    for name in ("one", "two"):
        examples.training(tmp_path / name)
    page = report([tmp_path], now=0.0).page
    (plot,) = re.findall(r">Loss by epoch<.*?</svg>", page, re.DOTALL)
    looks = re.findall(r'd="M-[^"]*0L[^"]*0"[^>]*stroke="([^"]*)"[^>]*stroke-width="([^"]*)"', plot)
    assert looks == [("var(--c1)", "2"), ("var(--c2)", "2"), ("#888", "1.8"), ("#888", "4")]


def test_marks_have_titles() -> None:
    (plot,) = drawn([{"name": "one", "x": 3.0}], kind="bars", x="x", y="name")
    assert "<title>x: 3; name: one</title>" in plot


def test_names_with_unprintable_characters_are_escaped_in_plots(tmp_path) -> None:
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


def test_the_validation_loss_is_drawn_only_with_the_training_loss(tmp_path) -> None:
    page = report([records.whole(tmp_path / "one")], now=0.0).page
    plots = re.findall(r"<title id=[^>]*>(Loss [^<]*)<(.*?)</svg>", page, re.DOTALL)
    assert [title for title, _ in plots] == ["Loss by epoch", "Loss by time"]
    for _, drawn in plots:
        assert [drawn.count(f">{of}<") for of in ("training", "validation")] == [1, 1]


def test_a_page_has_no_external_addresses(tmp_path) -> None:
    page = report([examples.training(tmp_path / "one"), examples.dataset(tmp_path / "data")], now=0.0).page
    assert re.findall(r'(?:href|src)="(?!#|data:)', page) == []
    assert "http://" not in page
    assert "https://" not in page
