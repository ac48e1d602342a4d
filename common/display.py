"""Formats numbers and untrusted text for people."""

import re
from collections.abc import Iterable, Mapping

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029"  # control characters, and the separators that end a line
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they change the order of the characters around them
    "\ud800-\udfff\ufffe\uffff]"  # UTF-8 and XML cannot represent them
)
"""Characters that no output contains. The second group has Unicode's property Bidi_Control
(https://www.unicode.org/Public/UCD/latest/ucd/PropList.txt, read on 2026-11-30). Joiners, on which Persian words and
many emoji depend, are printable."""


def plural(number: int, what: str) -> str:
    """Return a count with its noun: `1 row`, `1,234 rows`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def size(number: float) -> str:
    """Return a number of bytes as text with a decimal unit, such as `1.5 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:,.0f} {unit}" if unit == "bytes" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def printable(text: str) -> str:
    """Return the text as one line. Tabs, line breaks and the like become spaces, other unprintable characters `?`.

    Escape sequences in a file's text could control the terminal, and a line break could forge a message. The functions
    that print messages, notes and tables call `printable`, and so do the errors that the user sees (errors.py).
    """
    return _UNPRINTABLE.sub(lambda found: " " if found[0].isspace() else "?", text)


def is_printable(text: str) -> bool:
    """Return whether `printable` returns the text unchanged."""
    return _UNPRINTABLE.search(text) is None


def join_lines(lines: Iterable[str]) -> str:
    """Return a text with these lines. A line break within one of them becomes a space."""
    return "\n".join(map(printable, lines))


def printable_lines(text: str) -> str:
    """Return the text with `printable` applied to each line."""
    return join_lines(text.split("\n"))


def length_bins(lengths: Mapping[str, int]) -> dict[str, int]:
    """Return a histogram of text lengths from the first to the last non-empty bin.

    Its keys are ranges such as `3 to 4`.

    `lengths` maps the smallest length of each bin, ascending, to the number of texts in the bin, as counts.json does.
    """
    least = list(lengths)
    held = [number for number, each in enumerate(least) if lengths[each]]
    if not held:
        return {}

    def name(number: int) -> str:
        low = int(least[number])
        if number + 1 == len(least):
            return f"{low} and more"
        high = int(least[number + 1]) - 1
        return f"{low}" if low == high else f"{low} to {high}"

    return {name(number): lengths[least[number]] for number in range(held[0], held[-1] + 1)}
