"""How wide a person's screen is, and text that fits it.

The easy mistake is to take a width for granted where nobody looks: what goes into a file or to a program has none, and
is never wrapped.
"""

import os
from io import UnsupportedOperation
from textwrap import wrap
from typing import TextIO


def columns(stream: TextIO) -> int | None:
    """How many letters fit into a line there: as COLUMNS says, or the terminal; None where it is none."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError, UnsupportedOperation):
        return None


def wrapped(text: str, width: int | None) -> str:
    """The text with its lines broken between words where they are longer than that; the rest of a line is indented."""
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _lines(line, width))


def _lines(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    more = f"{indent}  " if indent else ""
    return wrap(line, width, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)
