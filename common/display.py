"""Formats numbers and untrusted text for people."""

from collections.abc import Mapping


def plural(number: int, what: str) -> str:
    """Return a count with its noun: `1 row`, `1,234 rows`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def printable(text: str) -> str:
    """Return the text as one line. White space is replaced by spaces, and other unprintable characters by `?`.

    Escape sequences in a file's text could control the terminal. The functions that print messages, notes and tables
    call `printable`, so their callers need not call it.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in text)


def printable_lines(text: str) -> str:
    """Return the text with `printable` applied to each line."""
    return "\n".join(map(printable, text.split("\n")))


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
