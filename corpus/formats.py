"""From a line of an input file to a text and its rating.

The easy mistake is to be lenient: a JSON parser that lets broken UTF-8, NaN or an overflowing number
through in a field nobody reads makes the dataset depend on the parser. A line is sound as a whole or malformed.
"""

import re
from typing import NamedTuple

import orjson

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_JSON_WHITESPACE = b" \t\r\n"
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)

MALFORMED_REASONS = ("not_json", "not_an_object", "no_text", "text_not_a_string", "no_rating", "bad_rating")


class Review(NamedTuple):
    """What is kept of a line: the text as written and its rating, an integer in the rating range."""

    text: str
    rating: int


class MalformedLineError(ValueError):
    """A line that is no review; `reason` is one of MALFORMED_REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_blank(line: bytes) -> bool:
    """Whether a line holds nothing but JSON's white space: such a line is not counted as one."""
    return not line.strip(_JSON_WHITESPACE)


def parse_snap_line(line: bytes, rating_range: tuple[int, int] = (1, 5)) -> Review:
    """The review of one line of a SNAP file (the fields of 2014 and 2018: `reviewText`, `overall`).

    `line` is without its newline and, on a file's first line, without the byte-order mark. `rating_range`
    is the smallest and the largest rating, both included. Raises MalformedLineError.
    """
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise MalformedLineError("not_json") from None
    if not isinstance(value, dict):
        raise MalformedLineError("not_an_object")
    text = value.get("reviewText")
    if not isinstance(text, str):
        raise MalformedLineError("no_text" if "reviewText" not in value else "text_not_a_string")
    if "overall" not in value:
        raise MalformedLineError("no_rating")
    return Review(text, _rating(value["overall"], rating_range))


def _rating(value: object, rating_range: tuple[int, int]) -> int:
    """The integer that a JSON number, or a string that holds one, stands for, if it is within the range."""
    if isinstance(value, str) and _JSON_NUMBER.fullmatch(stripped := value.strip(" \t\r\n")):
        value = float(stripped)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedLineError("bad_rating")
    low, high = rating_range
    if not low <= value <= high or value != int(value):
        raise MalformedLineError("bad_rating")
    return int(value)
