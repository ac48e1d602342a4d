"""Numbers and text from files, as a person is shown them."""

from collections.abc import Mapping


def plural(number: int, what: str) -> str:
    """A number of things: `1 row`, `1,234 rows`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def printable(text: str) -> str:
    """The text on one line: white space as spaces, and a `?` for everything else that does not print.

    Do not print text of a file without it, because a terminal may take what is in there for commands.
    """
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in text)


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
