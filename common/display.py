"""Numbers and text from files, as a person is shown them."""

from collections.abc import Mapping


def plural(number: int, what: str) -> str:
    """A number of things: `1 row`, `1,234 rows`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def printable(text: str) -> str:
    """The text on one line: white space as spaces, and a `?` for everything else that does not print.

    A terminal may execute what is in text of a file. The functions that print messages, notes and tables call this, so
    that their callers need not.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in text)


def printable_lines(text: str) -> str:
    """The text with each of its lines as `printable` returns it."""
    return "\n".join(map(printable, text.split("\n")))


def length_bins(lengths: Mapping[str, int]) -> dict[str, int]:
    """The bins of a histogram of lengths from the first to the last that holds texts, named by both of their ends.

    `lengths`: the number of texts by the least length of a bin, ascending, as counts.json has them.
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
