"""Numbers of a table as displayed and as CSV."""

import csv
import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.display import is_printable
from experiments.report.tables import Column, Table, shortened, shown, split_range, time_unit

COLUMNS = [Column("name", "name, of"), Column("number", "number", ",.1f")]
VALUES = st.one_of(st.none(), st.integers(-1000, 1000), st.floats(-1e6, 1e6), st.text(max_size=12))


def table(*rows: tuple[object, object]) -> Table:
    return Table(key="one", title="One", columns=COLUMNS, rows=[{"name": name, "number": at} for name, at in rows])


def test_unknown_values_are_a_dash_in_the_page_and_empty_in_a_csv() -> None:
    one = table(("a", None), ("b", 1234.56))
    assert one.cells() == [["a", "-"], ["b", "1,234.6"]]
    assert one.csv() == '"name, of",number\r\na,\r\nb,1234.56\r\n'


def test_a_csv_has_no_formulas() -> None:
    named = replace(table(("=1+1", -3)), columns=[replace(COLUMNS[0], head="=HYPERLINK(1)"), COLUMNS[1]])
    heads, row = csv.reader(io.StringIO(named.csv()))
    assert (heads, row) == (["'=HYPERLINK(1)", "number"], ["'=1+1", "-3"])


@given(rows=st.lists(st.tuples(VALUES, VALUES), max_size=6))
def test_a_csv_has_every_row_and_cell(rows: list[tuple[object, object]]) -> None:
    read = list(csv.reader(io.StringIO(table(*rows).csv(), newline="")))
    assert len(read) == len(rows) + 1
    assert all(len(row) == 2 for row in read)


@given(count=st.integers(0, 5000), most=st.integers(1, 300))
def test_thinned_ranges_cover_all_positions_in_order(count: int, most: int) -> None:
    parts = split_range(count, most)
    assert [place for part in parts for place in part] == list(range(count))
    assert len(parts) == min(count, most)


def test_times_are_shown_in_a_readable_unit() -> None:
    assert [time_unit(seconds)[1] for seconds in (3, 199, 200, 10_000, 20_000)] == ["s", "s", "min", "min", "h"]


@pytest.mark.parametrize(("text", "short"), [("as short", "as short"), ("a name with its number 1", "a nam…ber 1")])
def test_a_long_text_loses_its_middle(text: str, short: str) -> None:
    assert shortened(text, 12) == short


@given(text=st.text(max_size=30))
def test_a_text_is_shown_without_control_characters(text: str) -> None:
    displayed = shown(text, "")
    assert is_printable(displayed)
    assert displayed == text or not is_printable(text)
