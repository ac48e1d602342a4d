"""Formats numbers and untrusted text for people."""

from collections.abc import Mapping


def plural(number: int, what: str) -> str:
    """Return a count with its noun: `1 row`, `1,234 rows`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def printable(text: str) -> str:
    """Return the text on one line: white space becomes spaces, other unprintable characters become `?`.

    Escape sequences in a file's text could control the terminal. The functions that print messages, notes and tables
    call this, so their callers need not.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in text)


def printable_lines(text: str) -> str:
    """Return the text with `printable` applied to each line."""
    return "\n".join(map(printable, text.split("\n")))


def length_bins(lengths: Mapping[str, int]) -> dict[str, int]:
    """Return a histogram of text lengths, from its first to its last non-empty bin, keyed by range (`3 to 4`).

    `lengths`: the number of texts by the smallest length of a bin, ascending, as in counts.json.
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
