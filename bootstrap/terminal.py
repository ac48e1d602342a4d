"""How wide a person's screen is, and text that fits it.

The easy mistake is to take a width for granted where nobody looks: what goes into a file or to a program has none, and
is never wrapped. Nor is a command, which is copied and typed: it stands whole on a line of its own.
"""

import os
import re
from io import UnsupportedOperation
from textwrap import wrap
from typing import TextIO

_COMMANDS = ("shoal ", "aws ", "cdk ")
# A sentence that ends in a command, after a colon.
_ENDS_IN_COMMAND = re.compile(rf"(.*\S:) ((?:{'|'.join(_COMMANDS)}).+)")


def columns(stream: TextIO) -> int | None:
    """How many letters fit into a line there: as COLUMNS says, or the terminal; None where it is none."""
    try:
        if not stream.isatty():
            return None
        given = os.environ.get("COLUMNS", "")
        if given.isdecimal() and int(given):
            return int(given)
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError, UnsupportedOperation):
        return None


def wrapped(text: str, width: int | None) -> str:
    """The text with its lines broken between words where they are longer than that; the rest of a line is indented.

    A line that is a command stays whole, and so does the command that a line ends in after a colon: on the next line.
    """
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _lines(line, width))


def _lines(line: str, width: int) -> list[str]:
    if len(line) <= width or line.lstrip().startswith(_COMMANDS):
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    if command := _ENDS_IN_COMMAND.fullmatch(line):
        return [*_lines(command[1], width), f"{indent}  {command[2]}"]
    more = f"{indent}  " if indent else ""
    return wrap(line, width, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)
