"""Wraps text to the width of the terminal, and removes control characters.

Text for a file or a program is never wrapped. Commands are never wrapped either, because users copy them: each command
is moved to a line of its own.
"""

import os
import re
from io import UnsupportedOperation
from textwrap import wrap
from typing import TextIO

from common.display import printable_lines

_COMMANDS = ("shoal ", "aws ", "cdk ")
# A sentence that ends with a colon and a command.
_ENDS_IN_COMMAND = re.compile(rf"(.*\S:) ((?:{'|'.join(_COMMANDS)}).+)")


def is_drawn_on(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that can overwrite its lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO) -> int | None:
    """Return the terminal's width in characters (COLUMNS overrides it); None if the stream is not a terminal."""
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
    """Return printable text. Lines longer than `width` are wrapped between words, with continuation lines indented.

    A line that is a command is not wrapped. A command at the end of a line, after a colon, is moved to the next line.
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
