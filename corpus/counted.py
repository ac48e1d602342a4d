"""Numbers of things in sentences for a person.

The easy mistake is a plural that is always one: "1 rows" is read where something is wrong with that one.
"""


def plural(number: int, what: str) -> str:
    """So many of something: `1 row`, `1,234 rows`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
