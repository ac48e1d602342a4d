"""Splits JSON that is not an object a line, such as an array of objects or one over several lines, into its values.

Each value is then read as a line of JSON lines is. A range cannot begin in the middle of such a file, and nothing can
be found behind a fault: so a fault is damage of the file.
"""

import codecs
import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder

from corpus.reading.compression import DamagedArchiveError
from corpus.reading.formats import MAX_LINE_BYTES

_BETWEEN = re.compile(r"[\s,\[\]]*", re.ASCII)


def split_values(blocks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Lists of values, each as it is written. Raises DamagedArchiveError behind the last one before a fault.

    What follows a value is known only with the next block: a number may go on there.
    """
    decoder, bytes_of = JSONDecoder(), codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text, depth = "", 0
    for block in blocks:
        values, text, opened = _whole_values(decoder, text + bytes_of.decode(block))
        depth += opened
        yield values
        if len(text) > MAX_LINE_BYTES:
            raise DamagedArchiveError
    values, text, opened = _whole_values(decoder, text + bytes_of.decode(b"", final=True) + " ")
    yield values
    if text or depth + opened:
        raise DamagedArchiveError


def _whole_values(decoder: JSONDecoder, text: str) -> tuple[list[bytes], str, int]:
    """The values that end before the last letter of a text, the rest of it, and how many arrays begin between values
    without an end."""
    values = []
    at = _end(text, 0)
    opened = _opened(text[:at])
    while at < len(text):
        try:
            _, end = decoder.raw_decode(text, at)
        except (JSONDecodeError, RecursionError):
            break
        if end == len(text):
            break
        values.append(text[at:end].encode(errors="surrogateescape"))
        at = _end(text, end)
        opened += _opened(text[end:at])
    return values, text[at:], opened


def _opened(between: str) -> int:
    return between.count("[") - between.count("]")


def _end(text: str, at: int) -> int:
    """Where what stands between two values ends."""
    found = _BETWEEN.match(text, at)
    return found.end() if found else at
