"""Tables of a report: their columns are data, their rows are records, and their plots are drawn of these rows alone.

So table, CSV and plot cannot disagree. A row may have more fields than the table has columns; plots know them all.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from common.display import printable

Value = str | int | float | None
Row = Mapping[str, Any]
MEASURES = "measures"
"""The column of a row's measures by their names: each measure becomes a column of its own."""


@dataclass(frozen=True, kw_only=True)
class Column:
    key: str
    """The field of its rows: letters and `_`."""
    head: str
    form: str = ""
    """How a person is shown its numbers, as of format()."""
    is_time: bool = False
    """Its fields are seconds, shown in the unit that fits all of them; the head gets the unit."""


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A drawing of a table's rows. `x`, `y` and the other fields that name columns are keys."""

    title: str
    kind: Literal["lines", "bars", "points"]
    x: str | tuple[str, ...]
    """Of bars that are numbers beside names: their lengths; several columns are bars beside each other."""
    y: str
    by: str = ""
    """Of lines and points: names that have colours."""
    style: str = ""
    """Of lines: names that are told apart by breadth, the second broad and pale."""
    ends: tuple[str, str] | None = None
    """Of bars: the ends of a range that is drawn across."""
    ideal: str = ""
    """Of points: the y of a dashed line; only rows that have it are drawn. Both axes are logarithmic."""
    each: str = ""
    """Names of which each has a plot of its own."""
    several: str = ""
    """The plot is left out where this column has one value alone."""


@dataclass(frozen=True, kw_only=True)
class Table:
    key: str
    """Its place in the page, and the name of its CSV: lower-case letters and `-`."""
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    plots: Sequence[Plot] = ()
    text: str = ""
    """What there is to know before one looks at it."""
    is_folded: bool = False
    """Whether the table is shown only when it is asked for."""

    def values(self, key: str) -> list[Any]:
        """The different values of a column, in the order of the rows, without those that are not known."""
        return list(dict.fromkeys(row[key] for row in self.rows if row.get(key) not in (None, "")))

    def head(self, key: str) -> str:
        return next((column.head for column in self.columns if column.key == key), key)

    def cells(self) -> list[list[str]]:
        """The rows as a person is shown them; a dash for what is not known."""
        return [[shown(row.get(column.key), column.form) for column in self.columns] for row in self.rows]

    def numbers(self) -> list[bool]:
        """Which columns have numbers: they are set to the right."""
        return [any(isinstance(row.get(column.key), int | float) for row in self.rows) for column in self.columns]

    def csv(self) -> str:
        """The table as CSV. A text that a spreadsheet would take for a formula begins with an apostrophe there."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(column.head for column in self.columns)
        writer.writerows([_plain(row.get(column.key)) for column in self.columns] for row in self.rows)
        return text.getvalue()


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """A table of a section, as data."""

    key: str
    title: str
    rows: Callable[[Any], Iterable[Row]]
    """Of what the section is about."""
    columns: Sequence[Column]
    plots: Sequence[Plot] = ()
    text: str = ""
    is_folded: bool = False
    upright: bool = False
    """A single row is shown as a line for each of its columns."""
    labels: int = 1
    """The first columns, which say what a row is of; without others there is no table."""

    def made(self, content: Any) -> Table | None:
        """The table without the columns and plots of which nothing is known; None where nothing is."""
        rows = [dict(row) for row in self.rows(content)]
        if not rows:
            return None
        columns = [_in_unit(column, rows) for each in self.columns for column in _spread(each, rows)]
        columns = [each for each in columns if any(row.get(each.key) not in (None, "") for row in rows)]
        labels = {each.key for each in self.columns[: self.labels]}
        if all(each.key in labels for each in columns):
            return None
        table = Table(
            key=self.key, title=self.title, columns=columns, rows=rows, text=self.text, is_folded=self.is_folded
        )
        if self.upright and len(rows) == 1:
            return _upright(table)
        plots = [plot for plot in self.plots if _has_data(plot, table)]
        return replace(table, plots=plots, is_folded=self.is_folded or bool(plots))


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a title."""

    key: str
    title: str
    tables: Sequence[Table]
    text: str = ""


def _spread(column: Column, rows: Sequence[dict[str, Any]]) -> list[Column]:
    """The columns of the measures that the rows have; any other column by itself."""
    if column.key != MEASURES:
        return [column]
    names = list(dict.fromkeys(name for row in rows for name in row.get(MEASURES) or ()))
    for row in rows:
        row |= {f"measure_{place}": (row.get(MEASURES) or {}).get(name) for place, name in enumerate(names)}
    return [
        Column(key=f"measure_{place}", head=name.replace("_", " "), form=column.form)
        for place, name in enumerate(names)
    ]


def _in_unit(column: Column, rows: Sequence[dict[str, Any]]) -> Column:
    """A column of times with its unit; its fields are changed to that unit."""
    if not column.is_time:
        return column
    known = [row[column.key] for row in rows if row.get(column.key) is not None]
    seconds, unit = time_unit(max(known, default=0.0))
    for row in rows:
        if row.get(column.key) is not None:
            row[column.key] /= seconds
    return replace(column, head=f"{column.head}, {unit}")


def _upright(table: Table) -> Table:
    pairs = [{"what": column.head, "value": cell} for column, cell in zip(table.columns, table.cells()[0], strict=True)]
    columns = [Column(key="what", head="what"), Column(key="value", head="value")]
    return replace(table, columns=columns, rows=pairs)


def _has_data(plot: Plot, table: Table) -> bool:
    fields = (*([plot.x] if isinstance(plot.x, str) else plot.x), plot.y, *([plot.ideal] if plot.ideal else ()))
    if not all(table.values(field) for field in fields):
        return False
    return not plot.several or len(table.values(plot.several)) > 1


def shortened(text: str, most: int) -> str:
    """The text, without its middle where it has more than so many letters: names often differ at their ends alone."""
    kept = most // 2 - 1
    return text if len(text) <= most else f"{text[:kept]}…{text[-kept:]}"


def shown(value: Value, form: str) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return printable(value)
    return format(value, form) if form else str(value)


def thinned(count: int, most: int) -> list[range]:
    """At most `most` neighbouring ranges of about equal length that cover `count` positions."""
    parts = min(count, max(1, most))
    edges = [part * count // parts for part in range(parts + 1)] if parts else []
    return [range(first, last) for first, last in pairwise(edges)]


def time_unit(most_seconds: float) -> tuple[float, str]:
    """In which unit times up to this are readable: its seconds, and its sign."""
    if most_seconds < 200:
        return 1.0, "s"
    return (60.0, "min") if most_seconds < 3 * 3600 else (3600.0, "h")


def _plain(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@", "\t") else text
