"""Batches of a source's lines with the offset after each, and the choice of the lines that are text.

A line that is not text is skipped and counted. Do not decode it with replacements: one binary file would fill a
vocabulary with meaningless words.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from common.display import plural
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import Format, LabelEncoder, MalformedLineError
from corpus.reading.lines import LongLine
from corpus.reading.parsing import Review, is_blank, line_parser
from corpus.reading.sources import UNLABELLED

MIN_LINES = 1000
"""The share of malformed lines is checked only after this many lines."""

_REASONS = "not UTF-8, with NUL, longer than 4 MiB, or without the text field"


class Batch(NamedTuple):
    """Consecutive lines of a source."""

    address: str
    lines: list[bytes]
    """Lines without their newlines."""
    sizes: list[int]
    """Bytes of each line, with its newline; shape (lines,)."""
    ends: list[int]
    """Offset in the source after each line; shape (lines,)."""
    first_line: int | None = None
    """Number of the first line, from 1; unknown if reading started inside a file."""
    identity: str | None = None
    """ETag of the object."""
    too_long: bool = False
    """Whether this is the beginning of one line of more than MAX_LINE_BYTES."""
    ended: bool = False
    """Whether this marks the end of a compressed file."""


def batch_of_lines(address: str, found: list[bytes] | LongLine, offset: int) -> Batch:
    """Return a batch of the lines that `split_lines` found at an offset of a source."""
    if isinstance(found, LongLine):
        lines, sizes = [found.begins], [found.size + 1]
    else:
        lines, sizes = found, [len(line) + 1 for line in found]
    ends = list(accumulate(sizes, initial=offset))[1:]
    return Batch(address, lines, sizes, ends, too_long=isinstance(found, LongLine))


def texts_of_batch(batch: Batch, fields: Sequence[str] = ()) -> tuple[list[str], Sequence[int]]:
    """Return the texts of a batch, and the index of each in the batch.

    A text is a line that is text, or the text in these `fields` of a JSON object.
    """
    if batch.too_long or not batch.lines:
        return [], ()
    if fields:
        parse = line_parser(Format(kind="json", text=tuple(fields)), LabelEncoder(Settings()), UNLABELLED)
        texts = {number: _field_text(line, parse) for number, line in enumerate(batch.lines)}
        read = {number: text for number, text in texts.items() if text is not None}
        return [*read.values()], [*read]
    try:
        whole = b"\n".join(batch.lines).decode()
    except UnicodeDecodeError:
        whole = "\0"
    if "\0" not in whole:
        return whole.split("\n"), range(len(batch.lines))
    found = [(number, each) for number, line in enumerate(batch.lines) if (each := _text(line)) is not None]
    return [each for _, each in found], [number for number, _ in found]


class MalformedLines:
    """Check of the share of malformed lines, at most `most`. It keeps an example for the message."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._example: str | None = None

    def check(self, batch: Batch, text_lines: Sequence[int], malformed: int, lines: int) -> None:
        """Raise DataError if too many lines up to the end of a batch are malformed."""
        if self._example is None and len(text_lines) < len(batch.lines):
            self._example = _place(batch, text_lines)
        if self._example is not None and lines >= MIN_LINES and malformed / lines > self._most:
            raise DataError(
                f"{malformed:,} of {lines:,} lines are malformed ({_REASONS}), more than {self._most:.0%}, such as "
                f"{self._example}; remove such files from the sources, or start a new stream with a larger "
                "max_malformed"
            )


def describe_malformed(malformed: int, lines: int) -> str:
    """Return a sentence about lines that were skipped."""
    return f"{malformed:,} of {plural(lines, 'line')} are malformed ({_REASONS}) and were skipped"


def _place(batch: Batch, text_lines: Iterable[int]) -> str:
    """Return the position of the first malformed line of a batch."""
    number = min(set(range(len(batch.lines))).difference(text_lines))
    if batch.first_line is None:
        return f"the line at byte {batch.ends[number] - batch.sizes[number]:,} of {batch.address}"
    return f"line {batch.first_line + number:,} of {batch.address}"


def _field_text(line: bytes, parse: Callable[[bytes], Review]) -> str | None:
    """Return the text of a JSON line, with spaces for newlines; None if the line is malformed."""
    try:
        return "" if is_blank(line) else parse(line).text.replace("\n", " ").replace("\0", " ")
    except MalformedLineError:
        return None


def _text(line: bytes) -> str | None:
    try:
        found = line.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in found else found
