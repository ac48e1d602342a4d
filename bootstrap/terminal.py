"""Wraps text to the width of the terminal, without what a terminal would execute.

Text for a file or a program has no width and is never wrapped. A command is never wrapped either, because users copy
it: it is on a line of its own.
"""

import os
import re
from io import UnsupportedOperation
from textwrap import wrap
from typing import TextIO

from common.display import printable_lines

_COMMANDS = ("shoal ", "aws ", "cdk ")
# A sentence that ends in a command, after a colon.
_ENDS_IN_COMMAND = re.compile(rf"(.*\S:) ((?:{'|'.join(_COMMANDS)}).+)")


def is_drawn_on(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can go back over what is written there."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO) -> int | None:
    """The width of a terminal in characters, from COLUMNS or the terminal itself; None where it is not a terminal."""
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
    """The text in printable form, with lines longer than `width` broken between words and their continuations indented.

    A line that is a command is not broken. A command after a colon at the end of a line moves to the next line, whole.
    """
    text = printable_lines(text)
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
