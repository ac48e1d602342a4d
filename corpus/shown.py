"""What a file says, as a person is shown it.

The easy mistake is to print it as it is: a file may hold what a terminal takes for commands.
"""


def printable(text: str) -> str:
    """The text on one line: white space as spaces, and a `?` for all else that does not print."""
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in text)
