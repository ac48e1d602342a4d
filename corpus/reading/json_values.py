"""Splits JSON that is not an object a line, such as an array of objects or one over several lines, into its values.

Each value is then read as a line of JSON lines is. A range cannot begin in the middle of such a file, and nothing can
be found behind a fault: so a fault is damage of the file.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from json import JSONDecodeError, JSONDecoder

from corpus.reading.compression import DamagedArchiveError
from corpus.reading.formats import MAX_LINE_BYTES
from corpus.reading.lines import LongLine
from corpus.reading.tally import EXCERPT_BYTES

_LEVELS = 4
_MOST_LETTERS = 4 * MAX_LINE_BYTES
"""The most letters that are searched for the end of a value."""
_BETWEEN = re.compile(r"[\s,\[\]]*", re.ASCII)


def split_values(blocks: Iterator[bytes]) -> Iterator[list[bytes] | LongLine]:
    """Lists of values, each as it is written, and between them those that are too long. Raises DamagedArchiveError
    behind the last value before a fault.

    What follows a value is known only with the next block: a number may go on there. A newline within a string, which
    JSON does not allow, is for the parser of the value to refuse.
    """
    decoder, bytes_of = JSONDecoder(strict=False), codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text, depth = "", 0
    for block in blocks:
        values, text, opened = _whole_values(decoder, text + bytes_of.decode(block))
        depth += opened
        yield from _by_length(values)
        if len(text) > _MOST_LETTERS:
            raise DamagedArchiveError
    values, text, opened = _whole_values(decoder, text + bytes_of.decode(b"", final=True) + " ")
    yield from _by_length(values)
    if text or depth + opened:
        raise DamagedArchiveError


def _by_length(values: Sequence[bytes]) -> Iterator[list[bytes] | LongLine]:
    some: list[bytes] = []
    for value in values:
        if len(value) <= MAX_LINE_BYTES:
            some.append(value)
            continue
        yield some
        yield LongLine(value[:EXCERPT_BYTES], len(value), 0)
        some = []
    yield some


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


def json_objects(lines: Sequence[bytes]) -> list[dict[str, object]]:
    """The objects in lines of JSON; other lines are left out."""
    from orjson import JSONDecodeError, loads

    objects = []
    for line in lines:
        if line.lstrip().startswith(b"{"):
            try:
                objects.append(loads(line))
            except JSONDecodeError:
                continue
    return objects


def paths(value: dict[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """The fields of an object and of those inside it, some levels deep, by their paths with dots."""
    for key, inner in value.items():
        if isinstance(inner, dict) and above.count(".") < _LEVELS:
            yield from paths(inner, f"{above}{key}.")
        else:
            yield f"{above}{key}", inner
