"""Functions with which commands print: messages, tables, and one summary at the end, as text or as JSON (--json).

Text for a terminal is wrapped to its width, and no word is broken. Do not wrap text that goes into a file or to a
program. All text is printed in printable form, and a cell of a table is on one line, whatever a name in it contains.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import click
from tabulate import tabulate

from bootstrap.cli.command import option
from bootstrap.terminal import columns, wrapped
from common.display import printable, printable_lines

_BETWEEN = 2
"""Spaces between two columns of a table."""


json_option = option("--json", "as_json", is_flag=True, help="print the summary as JSON on standard output")
"""Declares --json."""


def say(text: str = "") -> None:
    """Print a line for a person."""
    print(wrapped(text, columns(sys.stderr)), file=sys.stderr, flush=True)  # noqa: T201


def print_error(sentence: str) -> None:
    """Print why a command fails, in red on a terminal."""
    _say_marked("shoal:", sentence, ink="red")


def print_warning(sentence: str) -> None:
    _say_marked("warning:", sentence, ink="yellow")


def colour() -> bool | None:
    """Click's `color`: no escape codes where the environment refuses them, else on terminals alone."""
    return False if "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb" else None


def _say_marked(mark: str, sentence: str, *, ink: str) -> None:
    text = wrapped(f"{mark} {sentence}", columns(sys.stderr))
    click.secho(mark, fg=ink, bold=True, nl=False, err=True, color=colour())
    print(text.removeprefix(mark), file=sys.stderr, flush=True)  # noqa: T201


def summary(content: Mapping[str, Any], rows: Iterable[Sequence[str]], *, as_json: bool) -> None:
    """Print a command's summary: `content` as JSON where --json asks for it, else `rows` as a table."""
    show(content, "" if as_json else table(rows), as_json=as_json)


def show(content: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print `content` as JSON where --json asks for it, else `text`."""
    print(json.dumps(content, default=str) if as_json else wrapped(text, columns(sys.stdout)))  # noqa: T201


def confirm(question: str) -> bool:
    """Whether the person at the terminal says yes."""
    sys.stderr.write(f"{printable_lines(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def percent(share: float) -> str:
    return f"{share:.1%}"


def table(
    rows: Iterable[Sequence[str]],
    heads: Sequence[str] = (),
    *,
    right: Sequence[int] = (),
    ruled: bool = False,
    stream: TextIO | None = None,
) -> str:
    """Rows as a table that fits the width of the stream (by default standard output), if its words do.

    `right` are the right-aligned columns; `ruled` draws a line below the heads. Where a table with heads is too wide
    for the terminal, each row becomes several lines, one for each cell.
    """
    cells = [[printable(str(cell)) for cell in row] for row in ([heads] if heads else []) + list(rows)]
    if not cells:
        return ""
    least = [max(map(_longest_word, column)) for column in zip(*cells, strict=True)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    width = columns(stream or sys.stdout)
    if width is not None:
        if heads and sum(least) + _BETWEEN * (len(least) - 1) > width:
            return "\n".join(part for row in cells[1:] for part in _stacked(row, heads, width))
        widths = _narrowed(widths, least, width)
    if ruled:
        cells.insert(1, ["-" * each for each in widths])
    return tabulate(
        [[wrapped(cell, max(each, 1)) for cell, each in zip(row, widths, strict=True)] for row in cells],
        tablefmt="plain",
        colalign=["right" if number in right else "left" for number in range(len(widths))],
        disable_numparse=True,
        preserve_whitespace=True,
    )


def _width(cell: str) -> int:
    return max(map(len, cell.split("\n")))


def _longest_word(cell: str) -> int:
    """The length of the longest word; a command counts as one word, because it is not broken."""
    return _width(wrapped(cell, 1))


def _narrowed(widths: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """The widths after the widest columns were made narrower until all fit; none is below its longest word."""
    made = list(widths)
    while sum(made) + _BETWEEN * (len(made) - 1) > width:
        able = [number for number in range(len(made)) if made[number] > least[number]]
        if not able:
            break
        made[max(able, key=made.__getitem__)] -= 1
    return made


def _stacked(row: Sequence[str], heads: Sequence[str], width: int) -> list[str]:
    first, *rest = row
    lines = [f"  {head}: {cell}" if head else f"  {cell}" for head, cell in zip(heads[1:], rest, strict=True) if cell]
    return [wrapped(line, width) for line in (first, *lines)]
