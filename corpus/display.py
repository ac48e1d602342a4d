"""Numbers and text from files, as a person is shown them."""


def plural(number: int, what: str) -> str:
    """A number of things: `1 row`, `1,234 rows`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def printable(text: str) -> str:
    """The text on one line: white space as spaces, and a `?` for everything else that does not print.

    Do not print text of a file without it, because a terminal may take what is in there for commands.
    """
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in text)
