"""Prints the results of commands as text or JSON (--json), and prints messages and tables.

A command returns a `Result`: the content for programs (JSON), and the parts of the text for people. Texts are
`str.format` templates. Their fields are fields of the content, and their format specifiers are functions of figures.py:
`{spent:dollars}`, `{group.bytes:size}`.

Text for a terminal is wrapped to the terminal's width without breaking words. Do not wrap text for a file or a program.
Control characters are replaced in all text, and each message and table cell is one line, because names can contain
control characters and line breaks. Compose a text of several lines with `common.display.join_lines`.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from string import Formatter
from typing import TYPE_CHECKING, Any, TextIO

import click

from bootstrap.cli import figures
from bootstrap.terminal import columns, wrapped
from common.display import join_lines, plural, printable, size

if TYPE_CHECKING:
    from bootstrap.aws.account import Account

JSON = "shoal.json"
"""Key in the `meta` of a Click context: true if --json was given."""
_BETWEEN = 2
"""Spaces between two columns of a table."""
_NUMBER = re.compile(r"(\W{0,2}[\d,.]++(%| [kMGT]?B| bytes)?( to )?)+|unknown|-|")
"""Matches the cells of a right-aligned column. A possessive quantifier avoids backtracking on ids with many digits."""
_FORMATS: dict[str, Callable[[Any], str]] = {
    "dollars": figures.dollars,
    "duration": figures.duration,
    "list": ", ".join,
    "percent": figures.percent,
    "size": size,
    "utc": figures.utc_time,
}


@dataclass(frozen=True)
class Table:
    """Table with one row per entry of a list or mapping.

    `of`: the entries, or the name of the content field that contains them. For a mapping, templates can use `{key}`.
    `columns` maps the head of each column to a template over the fields of an entry. A cell is empty if a field of its
    template is missing or None.
    """

    of: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
    columns: Mapping[str, "Template"]


Template = str | Callable[[Mapping[str, Any]], str | None]
Rows = Mapping[str, Template]
Part = str | Rows | Iterable[tuple[str, str]] | Table
"""A paragraph; rows of label and template, left out if a field is missing; rows of label and text; or a table.
"""


@dataclass(frozen=True)
class Result:
    """Result of a command: `content` for programs, `parts` for people, and the exit status."""

    content: Mapping[str, Any]
    parts: Sequence[Part]
    status: int = 0
    warnings: Sequence[str] = ()
    """Messages for standard error. They are not printed with --json, because `content` contains them."""
    failures: Sequence[str] = ()
    """Messages for standard error. They are also printed with --json."""


def with_unanswered(result: Result, account: "Account", unanswered: Sequence[str]) -> Result:
    """Return the result of a command, with exit status 1 and a message if AWS did not answer some requests.

    `unanswered` says what is unknown for this reason.
    """
    if not unanswered:
        return result
    from bootstrap.aws.account import name_of

    failure = (
        f"AWS did not answer every request for {name_of(account)}: {'; '.join(dict.fromkeys(unanswered))}. Use "
        "credentials with the missing permissions, and run the command again"
    )
    return replace(result, status=1, failures=[*result.failures, failure])


def print_result(result: Result, stream: TextIO | None = None) -> int:
    """Print a result as text or, with --json, as JSON; return the exit status."""
    stream = stream or sys.stdout
    if wants_json():
        print(json.dumps(result.content, default=_plain), file=stream)
    else:
        print_parts(result.parts, result.content, stream)
        for sentence in result.warnings:
            print_warning(sentence)
    for sentence in result.failures:
        print_error(sentence)
    return result.status


def print_parts(parts: Sequence[Part], content: Mapping[str, Any], stream: TextIO) -> None:
    """Print the parts of a text, separated by empty lines."""
    text = "\n\n".join(filter(None, (_text(part, content, stream) for part in parts)))
    print(wrapped(text, columns(stream)), file=stream, flush=True)


def wants_json() -> bool:
    """Return whether the running command was given --json."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(JSON))


def _plain(value: object) -> str:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)


def _text(part: Part, content: Mapping[str, Any], stream: TextIO) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Table):
        return _filled_table(part, content[part.of] if isinstance(part.of, str) else part.of, stream)
    return table(filled_rows(part, content) if isinstance(part, Mapping) else part, stream=stream)


def filled_rows(rows: Rows, content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the labels with their filled templates, without rows that have a missing field."""
    return [(label, text) for label, template in rows.items() if (text := filled(template, content)) is not None]


def _filled_table(part: Table, entries: Any, stream: TextIO) -> str:
    if isinstance(entries, Mapping):
        entries = [{"key": key, **each} for key, each in entries.items()]
    rows = [[filled(cell, each) or "" for cell in part.columns.values()] for each in entries]
    right = [at for at, cells in enumerate(zip(*rows, strict=True)) if at and all(map(_NUMBER.fullmatch, cells))]
    return table(rows, list(part.columns), right=right, ruled=True, stream=stream) if rows else ""


class _Figures(Formatter):
    def get_field(self, field_name: str, _args: Any, kwargs: Any) -> tuple[Any, str]:
        value: Any = kwargs
        for name in field_name.split("."):
            if value is None:
                raise LookupError
            value = value[name]
        return value, field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        name, _, what = format_spec.partition(" ")
        if value is None and name not in ("dollars", "percent", "utc"):
            raise LookupError
        if name == "plural":
            return plural(value, what)
        return _FORMATS[name](value) if name in _FORMATS else format(value, format_spec)


def filled(template: Template, content: Mapping[str, Any]) -> str | None:
    """Return a filled template; None if a field is missing, or is null and has a format that cannot show null."""
    if callable(template):
        return template(content)
    try:
        return _Figures().vformat(template, (), content)
    except LookupError:
        return None


def say(*lines: str) -> None:
    """Print a message on standard error. Each argument is one line of the message."""
    print(wrapped(join_lines(lines), columns(sys.stderr)), file=sys.stderr, flush=True)  # noqa: T201


def print_error(*lines: str) -> None:
    """Print an error message on standard error, with a red mark on a terminal."""
    _say_marked("shoal:", *lines, ink="red")


def print_warning(*lines: str) -> None:
    _say_marked("warning:", *lines, ink="yellow")


def colour() -> bool | None:
    """Return Click's `color`: False if the environment disables colours, else None (colours on terminals only)."""
    return False if "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb" else None


def _say_marked(mark: str, sentence: str, *more: str, ink: str) -> None:
    text = wrapped(join_lines([f"{mark} {sentence}", *more]), columns(sys.stderr))
    click.secho(mark, fg=ink, bold=True, nl=False, err=True, color=colour())
    print(text.removeprefix(mark), file=sys.stderr, flush=True)  # noqa: T201


def confirm(question: str) -> bool:
    """Ask a yes-or-no question at the terminal; return True for yes."""
    sys.stderr.write(f"{printable(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def table(
    rows: Iterable[Sequence[str]],
    heads: Sequence[str] = (),
    *,
    right: Sequence[int] = (),
    ruled: bool = False,
    stream: TextIO | None = None,
) -> str:
    """Return rows as a table. It fits the width of the stream (default: standard output) unless a word is too long.

    `right`: the indices of right-aligned columns. `ruled`: draw a line below the heads. If a table with heads is too
    wide for the terminal, each cell is printed on a line of its own.
    """
    from tabulate import tabulate  # slow to import

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
    """Return the length of the longest word. A command counts as one word, because it is not wrapped."""
    return _width(wrapped(cell, 1))


def _narrowed(widths: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Narrow the widest columns until the table fits `width`, but no column below its `least`; return the widths."""
    narrowed = list(widths)
    while sum(narrowed) + _BETWEEN * (len(narrowed) - 1) > width:
        able = [number for number in range(len(narrowed)) if narrowed[number] > least[number]]
        if not able:
            break
        narrowed[max(able, key=narrowed.__getitem__)] -= 1
    return narrowed


def _stacked(row: Sequence[str], heads: Sequence[str], width: int) -> list[str]:
    first, *rest = row
    lines = [f"  {head}: {cell}" if head else f"  {cell}" for head, cell in zip(heads[1:], rest, strict=True) if cell]
    return [wrapped(line, width) for line in (first, *lines)]
