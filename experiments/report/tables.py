"""Tables of a report. Columns are data, rows are records, and plots are drawn only from these rows.

So a table, its CSV file and its plots cannot disagree. A row can have more fields than the table has columns, and plots
can use all fields.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from common.display import printable

Value = str | int | float | None
Row = Mapping[str, Any]
MEASURES = "measures"
"""Key of the column with the measures of a row, by name. Each measure becomes a separate column."""


@dataclass(frozen=True)
class Column:
    key: str
    """Name of the field in the rows, with letters and `_`."""
    head: str
    form: str = ""
    """Format of displayed numbers, as a format specification for format()."""
    is_time: bool = False
    """Whether the values are seconds. They are displayed in one suitable unit, which the head of the column names."""


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Plot of a table's rows as lines, one for each value of `by`. All fields but the title are keys of columns."""

    title: str
    x: str
    y: str
    by: str
    style: str = ""
    """Column of two names that are drawn differently. The line of the second name is broad and pale."""
    each: str = ""
    """Column of names. Each name gets a separate plot."""


@dataclass(frozen=True, kw_only=True)
class Table:
    key: str
    """Anchor in the page and name of the CSV file, with lower-case letters and `-`."""
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    plots: Sequence[Plot] = ()
    text: str = ""
    """Explanation above the table."""
    is_list: bool = False
    """Whether the table is a narrow list of one row's fields, which needs only one column of the page."""

    @property
    def is_folded(self) -> bool:
        """Whether the table is folded until the reader opens it, because its plots show the rows."""
        return bool(self.plots)

    def values(self, key: str) -> list[Any]:
        """Return the distinct values of a column, in the order of the rows, without unknown values."""
        return list(dict.fromkeys(row[key] for row in self.rows if row.get(key) not in (None, "")))

    def head(self, key: str) -> str:
        return next((column.head for column in self.columns if column.key == key), key)

    def cells(self) -> list[list[str]]:
        """Return the rows as displayed, with a dash for unknown values."""
        return [[shown(row.get(column.key), column.form) for column in self.columns] for row in self.rows]

    def numbers(self) -> list[bool]:
        """Return, for each column, whether it has numbers, which are aligned to the right."""
        return [any(isinstance(row.get(column.key), int | float) for row in self.rows) for column in self.columns]

    def csv(self) -> str:
        """Return the table as CSV. Strings that look like formulas are prefixed with an apostrophe."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(_plain(column.head) for column in self.columns)
        writer.writerows([_plain(row.get(column.key)) for column in self.columns] for row in self.rows)
        return text.getvalue()


@dataclass(frozen=True, kw_only=True)
class Section:
    """Section of the page."""

    key: str
    title: str
    tables: Sequence[Table]
    text: str = ""


def filled_table(rows: Iterable[Row], columns: Sequence[Column], *, labels: int = 1, **about: Any) -> list[Table]:
    """Return a table without empty columns and plots, in a list. Return an empty list if no data remains.

    The first columns, of number `labels`, identify a row. A table with no other columns has no data. `about` contains
    the other fields of Table.
    """
    found = [dict(row) for row in rows]
    made = [_in_unit(column, found) for each in columns for column in _spread(each, found)]
    made = [each for each in made if any(row.get(each.key) not in (None, "") for row in found)]
    if {each.key for each in made} <= {each.key for each in columns[:labels]}:
        return []
    table = Table(columns=made, rows=found, **about)
    return [replace(table, plots=[plot for plot in table.plots if _has_data(plot, table)])]


def upright(table: Table) -> Table:
    """Return a table with a single row as a list, with one column of the table per line."""
    pairs = [{"what": column.head, "value": cell} for column, cell in zip(table.columns, table.cells()[0], strict=True)]
    return replace(table, columns=[Column("what", "what"), Column("value", "value")], rows=pairs, is_list=True)


def _spread(column: Column, rows: Sequence[dict[str, Any]]) -> list[Column]:
    """Return one column for each measure if `column` is the column of measures. Otherwise return only `column`.

    The head of a measure begins with the head of `column`.
    """
    if column.key != MEASURES:
        return [column]
    names = list(dict.fromkeys(name for row in rows for name in row.get(MEASURES) or ()))
    for row in rows:
        row |= {f"measure_{place}": (row.get(MEASURES) or {}).get(name) for place, name in enumerate(names)}
    return [replace(column, key=f"measure_{place}", head=f"{column.head}{name}") for place, name in enumerate(names)]


def _in_unit(column: Column, rows: Sequence[dict[str, Any]]) -> Column:
    """Convert the values of a column of times, in `rows`, to one suitable unit. Return the column with this unit in its
    head."""
    if not column.is_time:
        return column
    known = [row[column.key] for row in rows if row.get(column.key) is not None]
    seconds, unit = time_unit(max(known, default=0.0))
    for row in rows:
        if row.get(column.key) is not None:
            row[column.key] /= seconds
    return replace(column, head=f"{column.head}, {unit}")


def _has_data(plot: Plot, table: Table) -> bool:
    """Return whether a plot has a line, which needs two points."""
    known = [row for row in table.rows if row.get(plot.x) is not None and row.get(plot.y) is not None]
    points = Counter(tuple(row.get(key) for key in (plot.each, plot.by, plot.style, "run")) for row in known)
    return max(points.values(), default=0) > 1


def shortened(text: str, most: int) -> str:
    """Return `text`. If it is longer than `most`, remove its middle, because names often differ only at their ends."""
    kept = most // 2 - 1
    return text if len(text) <= most else f"{text[:kept]}…{text[-kept:]}"


def shown(value: Value, form: str) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return printable(value)
    return format(value, form) if form else str(value)


def split_range(count: int, most: int) -> list[range]:
    """Split the positions 0 to `count` - 1 into at most `most` adjacent ranges of about equal length."""
    parts = min(count, max(1, most))
    edges = [part * count // parts for part in range(parts + 1)] if parts else []
    return [range(first, last) for first, last in pairwise(edges)]


def time_unit(most_seconds: float) -> tuple[float, str]:
    """Return a readable unit for times up to `most_seconds`: the unit's length in seconds, and its symbol."""
    if most_seconds < 200:
        return 1.0, "s"
    return (60.0, "min") if most_seconds < 3 * 3600 else (3600.0, "h")


def _plain(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, str):
        return str(value)
    text = printable(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
