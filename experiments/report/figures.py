"""What a report is made of: sections of figures, each with its numbers and the plots that are drawn of them.

A plot is drawn of the rows of its figure's table and of nothing else, so that table, CSV and plot cannot disagree.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from unicodedata import east_asian_width

from common.display import printable

Value = str | int | float | None
MOST_POINTS = 160
"""Rows that a figure with lines has, of all runs together: more would not be seen, and make a large page."""


@dataclass(frozen=True, kw_only=True)
class Column:
    key: str
    """By which plots know it: letters and `_`."""
    head: str
    """With its unit, as in `time, s`."""
    form: str = ""
    """How a person is shown its numbers, as of format()."""


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A drawing of a figure's rows."""

    title: str
    description: str
    """What is drawn, for a reader who does not see it."""
    spec: Mapping[str, Any]
    """In Vega-Lite, without data, size and colours of the page (drawing.py)."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    key: str
    """Its place in the page, and the name of its CSV: lower-case letters and `-`."""
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    plots: Sequence[Plot] = ()
    text: str = ""
    """What there is to know before one looks at it."""
    folded: bool | None = None
    """Whether the table is shown only when it is asked for; None: where there are plots."""

    @property
    def is_folded(self) -> bool:
        """Whether the table is shown only when it is asked for."""
        return bool(self.plots) if self.folded is None else self.folded

    def without_empty_columns(self) -> "Figure":
        """The same without the columns in which nothing is known."""
        places = range(len(self.columns))
        return self.with_columns([place for place in places if any(row[place] not in (None, "") for row in self.rows)])

    def with_columns(self, places: Sequence[int]) -> "Figure":
        """The same with some of its columns, by their places."""
        rows = [[row[place] for place in places] for row in self.rows]
        return replace(self, columns=[self.columns[place] for place in places], rows=rows)

    def in_two(self, beginnings: tuple[str, ...], *, key: str, title: str) -> list["Figure"]:
        """Two tables, where one would be too wide for a page: the second has the first column, and those whose keys
        begin so. One where there are none."""
        second = [place for place, column in enumerate(self.columns) if column.key.startswith(beginnings)]
        first = [place for place in range(len(self.columns)) if place not in second]
        other = replace(self.with_columns([0, *second]), key=key, title=title, text="")
        return [self.with_columns(first), other] if second else [self]

    def records(self) -> list[dict[str, Value]]:
        """The rows as plots know them, each with its place, `row`."""
        keys = [column.key for column in self.columns]
        return [{**dict(zip(keys, row, strict=True)), "row": place} for place, row in enumerate(self.rows)]

    def cells(self) -> list[list[str]]:
        """The rows as a person is shown them; a dash for what is not known."""
        return [
            [shown(value, column.form) for value, column in zip(row, self.columns, strict=True)] for row in self.rows
        ]

    def csv(self) -> str:
        """The table as CSV. A text that a spreadsheet would take for a formula begins with an apostrophe there."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(column.head for column in self.columns)
        writer.writerows([_plain(value) for value in row] for row in self.rows)
        return text.getvalue()


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a title."""

    key: str
    title: str
    figures: Sequence[Figure]
    text: str = ""


def key_of(*parts: str) -> str:
    return "-".join(re.findall("[a-z0-9]+", "-".join(parts).lower()))


def measure_columns(measures: Sequence[str]) -> list[Column]:
    return [
        Column(key=f"measure_{place}", head=each.replace("_", " "), form=".4f") for place, each in enumerate(measures)
    ]


def shortened(text: str, most: int) -> str:
    """The text, without its middle where it is wider than so many letters; a letter as wide as Chinese ones counts as
    three. Names often differ at their ends alone."""

    def taken(letters: Iterable[str]) -> str:
        found, width = "", 0
        for letter in letters:
            width += 3 if east_asian_width(letter) in "WF" else 1
            if width > most // 2 - 1:
                break
            found += letter
        return found

    if sum(3 if east_asian_width(letter) in "WF" else 1 for letter in text) <= most:
        return text
    return f"{taken(text)}…{taken(reversed(text))[::-1]}"


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
