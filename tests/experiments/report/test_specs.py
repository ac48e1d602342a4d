"""Names and axes as plots show them."""

import re
from collections.abc import Sequence

import pytest

from experiments.report.drawing import drawn
from experiments.report.specs import (
    HEIGHT,
    Spec,
    bars,
    coloured,
    columns_of,
    counted,
    height_of,
    measured,
    number,
    rows_of,
)

LONG = "a name that no plot has the place for, "


def texts(spec: Spec, rows: Sequence[dict[str, object]]) -> list[str]:
    svg = drawn(spec, rows, title="A plot", description="Of rows.", key="a")  # type: ignore[arg-type]
    return re.findall("<text[^>]*>([^<]*)<", svg)


def test_long_names_beside_bars_keep_their_ends() -> None:
    names = [f"{LONG}1", f"{LONG}2", "short"]
    spec = {**bars(), "mark": "bar", "encoding": {"y": rows_of("name", names), "x": number("size", "size")}}
    found = texts(spec, [{"name": each, "size": 1} for each in names])
    assert found[-3:] == ["a name tha…ace for, 1", "a name tha…ace for, 2", "short"]


@pytest.mark.parametrize("most", [0.003, 0.2, 30.0, 150.0, 5400.0])
@pytest.mark.parametrize("letters", [5, 30])
def test_an_axis_has_a_number_at_each_of_its_ticks_beside_names_of_any_length(letters: int, most: float) -> None:
    spec = {**bars(), "mark": "bar", "encoding": {"y": rows_of("name", ["m" * letters]), "x": number("size", "size")}}
    svg = drawn(spec, [{"name": "m" * letters, "size": most}], title="A plot", description="Of rows.", key="a")
    assert re.findall('<text[^>]* opacity="0"[^>]*>([^<]*)<', svg) == []


@pytest.mark.parametrize("count", [2, 6, 8, 12])
def test_lines_differ_in_colour_or_in_dashes(count: int) -> None:
    found = coloured("name", [f"run {number}" for number in range(count)])
    looks = zip(found["color"]["scale"]["range"], map(tuple, found["strokeDash"]["scale"]["range"]), strict=True)
    assert len(set(looks)) == count


@pytest.mark.parametrize(("most", "named"), [(1, ["1"]), (3, ["1", "2", "3"]), (40, ["0", "10", "20", "30", "40"])])
def test_whole_numbers_are_named_whole(most: int, named: list[str]) -> None:
    spec = {"mark": "line", "encoding": {"x": counted("at", "at", most), "y": {"field": "at", "axis": None}}}
    assert texts(spec, [{"at": at} for at in range(1, most + 1)])[:-1] == named


def test_a_measure_that_never_changes_is_named_at_its_axis() -> None:
    spec = {"mark": "line", "encoding": {"x": number("at", "at"), "y": measured("loss", "loss")}}
    assert "0.45" in texts(spec, [{"at": at, "loss": 0.45} for at in (1, 2)])


@pytest.mark.parametrize(
    ("names", "lines"), [(["a"], 0), (["a", "b"], 1), (list("abcd"), 2), (["m" * 9, "n", "o"], 2), (["m" * 17, "n"], 2)]
)
def test_a_plot_has_room_for_its_legend(names: list[str], lines: int) -> None:
    assert height_of(names) == HEIGHT + 15 * lines


def test_names_below_columns_stand_upright_where_they_have_no_place_beside_each_other() -> None:
    found = [columns_of("x", "X", names)["axis"]["labelAngle"] for names in (["a", "b"], ["long name"] * 4)]
    assert found == [0, -90]
