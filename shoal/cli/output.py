"""Prints the results of commands as text or JSON (--json), and prints messages and tables.

A command returns a `Result`: the content for programs (JSON), and the parts of the text for people. Texts are
`str.format` templates. Their fields are fields of the content, and their format specifiers are names of functions in
figures.py: `{spent:dollars}`, `{group.bytes:size}`, `{rows:plural row}`.

Messages are not wrapped, so that users can copy the commands in them. Control characters are replaced in all text, and
each message and table cell is one line, because names can contain control characters and line breaks. Compose a text of
several lines with `common.display.join_lines`.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from shutil import get_terminal_size
from string import Formatter
from typing import TYPE_CHECKING, Any, TextIO

import click

from common.display import join_lines, printable, printable_lines
from shoal.cli import figures

if TYPE_CHECKING:
    from shoal.aws.account import Account

JSON = "shoal.json"
"""Key in the `meta` of a Click context: true if --json was given."""
_NUMBER = re.compile(r"(\W{0,2}[\d,.]++(%| [kMGT]?B| bytes)?( to )?)+|unknown|-|")
"""Matches the cells of a right-aligned column. A possessive quantifier avoids backtracking on ids with many digits."""
Template = str | Callable[[Mapping[str, Any]], str | None]
Rows = Mapping[str, Template]


@dataclass(frozen=True)
class Table:
    """Table with one row per entry of a list or mapping.

    `of`: the entries, or the name of the content field that contains them. For a mapping, templates can use `{key}`.
    `columns` maps the head of each column to a template over the fields of an entry. A cell is empty if a field of its
    template is missing or None.
    """

    of: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
    columns: Rows


Part = str | Rows | Iterable[tuple[str, str]] | Table
"""A paragraph; rows of label and template, left out if a field is missing; rows of label and text; or a table."""


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
    from shoal.aws.account import name_of

    failure = (
        f"AWS did not answer every request for {name_of(account)}: {'; '.join(dict.fromkeys(unanswered))}. Use "
        "credentials with the missing permissions, and run the command again"
    )
    return replace(result, status=1, failures=[*result.failures, failure])


def wants_json() -> bool:
    """Return whether the running command was given --json."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(JSON))


def print_result(result: Result, stream: TextIO | None = None) -> int:
    """Print a result as text or, with --json, as JSON; return the exit status."""
    if wants_json():
        print(json.dumps(result.content, default=_plain), file=stream)
    else:
        print_parts(result.parts, result.content, stream)
        for sentence in result.warnings:
            print_warning(sentence)
    for sentence in result.failures:
        print_error(sentence)
    return result.status


def _plain(value: object) -> str:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)


def print_parts(parts: Sequence[Part], content: Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Print the parts of a text, separated by empty lines."""
    text = "\n\n".join(filter(None, (_text(part, content, stream) for part in parts)))
    print(printable_lines(text), file=stream, flush=True)


def _text(part: Part, content: Mapping[str, Any], stream: TextIO | None) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Table):
        return table(filled_rows(part, content) if isinstance(part, Mapping) else part)
    entries: Any = content[part.of] if isinstance(part.of, str) else part.of
    if isinstance(entries, Mapping):
        entries = [{"key": key, **each} for key, each in entries.items()]
    rows = [[filled(cell, each) or "" for cell in part.columns.values()] for each in entries]
    right = [at for at, cells in enumerate(zip(*rows, strict=True)) if at and all(map(_NUMBER.fullmatch, cells))]
    return table(rows, list(part.columns), right=right, ruled=True, stream=stream) if rows else ""


def filled_rows(rows: Rows, content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the labels with their filled templates, without rows that have a missing field."""
    return [(label, text) for label, template in rows.items() if (text := filled(template, content)) is not None]


def filled(template: Template, content: Mapping[str, Any]) -> str | None:
    """Return a filled template; None if a field is missing, or is null and has a format that cannot show null."""
    if callable(template):
        return template(content)
    try:
        return _Figures().vformat(template, (), content)
    except LookupError:
        return None


class _Figures(Formatter):
    def get_field(self, field_name: str, _args: Any, kwargs: Any) -> tuple[Any, str]:
        value: Any = kwargs
        for name in field_name.split("."):
            if value is None:
                raise LookupError
            value = value[name]
        return value, field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        name, *noun = format_spec.split(" ", 1)
        if value is None and name not in ("dollars", "percent", "utc_time"):
            raise LookupError
        function = getattr(figures, name, None)
        return function(value, *noun) if function else format(value, format_spec)


def table(
    rows: Iterable[Sequence[str]],
    heads: Sequence[str] = (),
    *,
    right: Sequence[int] = (),
    ruled: bool = False,
    stream: TextIO | None = None,
) -> str:
    """Return rows as a table. With heads, the last column is wrapped to the width of the terminal.

    `right`: the indices of right-aligned columns. `ruled`: draw a line below the heads. `stream`: where the table will
    be printed (default: standard output); only a terminal has a width.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table as Grid

    cells = [[printable(str(cell)) for cell in row] for row in ([heads] if heads else []) + list(rows)]
    if not cells:
        return ""
    *widths, last = (max(map(cell_len, column)) for column in zip(*cells, strict=True))
    before = sum(widths) + 2 * len(widths)
    if heads and (stream or sys.stdout).isatty():
        longest_word = max(cell_len(word) for row in cells for word in ["", *row[-1].split()])
        last = min(last, max(get_terminal_size().columns - before, longest_word, 20))
    if ruled:
        cells.insert(1, ["-" * each for each in (*widths, last)])
    grid = Grid.grid(padding=(0, 2))
    for index, width in enumerate((*widths, last)):
        grid.add_column(justify="right" if index in right else "left", width=width)
    for row in cells:
        grid.add_row(*row)
    console = Console(width=before + last, color_system=None, markup=False, emoji=False, highlight=False)
    with console.capture() as drawn:
        console.print(grid)
    return "\n".join(map(str.rstrip, drawn.get().splitlines()))


def say(*lines: str) -> None:
    """Print a message on standard error. Each argument is one line of the message."""
    print(join_lines(lines), file=sys.stderr, flush=True)  # noqa: T201


def print_error(sentence: str, *more: str) -> None:
    """Print an error message on standard error, with a red mark on a terminal."""
    _print_mark("shoal:", "red")
    say(f" {sentence}", *more)


def print_warning(sentence: str) -> None:
    """Print a warning on standard error, with a yellow mark on a terminal."""
    _print_mark("warning:", "yellow")
    say(f" {sentence}")


def _print_mark(mark: str, ink: str) -> None:
    is_plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    click.secho(mark, fg=ink, bold=True, nl=False, err=True, color=False if is_plain else None)


def confirm(question: str) -> bool:
    """Ask a yes-or-no question at the terminal; return True for yes."""
    sys.stderr.write(f"{printable(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
