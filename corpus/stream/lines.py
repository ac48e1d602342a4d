"""Defines batches of a source's lines with the offset after each line, and selects the lines that are text.

A line that is not text is skipped and counted. Do not decode such a line with replacement characters, because one
binary file would fill a vocabulary with meaningless words.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from common.display import plural
from corpus.dataset_settings import Settings
from corpus.reading.formats import Format, LabelEncoder, MalformedLineError
from corpus.reading.lines import LongLine
from corpus.reading.parsing import Review, is_blank, line_parser
from corpus.reading.sources import UNLABELLED

REASONS = "not UTF-8, with NUL, longer than 4 MiB, or without the text field"


class Batch(NamedTuple):
    """Consecutive lines of a source."""

    address: str
    lines: list[bytes]
    """Lines without their newlines."""
    sizes: list[int]
    """Size of each line in bytes, including its newline; shape (lines,)."""
    ends: list[int]
    """Offset in the source after each line; shape (lines,)."""
    first_line: int | None = None
    """Number of the first line, from 1, or None if it is unknown because reading resumed inside the file."""
    identity: str | None = None
    """ETag, if the source is an S3 object."""
    too_long: bool = False
    """Whether the batch has only the beginning of one line of more than MAX_LINE_BYTES."""
    ended: bool = False
    """Whether the batch has no lines, but marks the end of a compressed file."""


def batch_of_lines(address: str, found: list[bytes] | LongLine, offset: int) -> Batch:
    """Return the batch of lines `found`, which `split_lines` yielded at byte `offset` of a source."""
    if isinstance(found, LongLine):
        lines, sizes = [found.begins], [found.size + 1]
    else:
        lines, sizes = found, [len(line) + 1 for line in found]
    ends = list(accumulate(sizes, initial=offset))[1:]
    return Batch(address, lines, sizes, ends, too_long=isinstance(found, LongLine))


def texts_of_batch(batch: Batch, fields: Sequence[str] = ()) -> tuple[list[str], Sequence[int]]:
    """Return the texts of a batch, and the index of each text's line in the batch.

    A text is a whole line, or, if `fields` are given, the text in these fields of a line's JSON object. Malformed lines
    are left out.
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


def describe_malformed(malformed: int, lines: int) -> str:
    """Return a clause about malformed lines, which were skipped."""
    return f"{malformed:,} of {plural(lines, 'line')} are malformed ({REASONS}) and were skipped"


def place_of_malformed(batch: Batch, text_lines: Iterable[int]) -> str:
    """Describe the position of the first malformed line of a batch, for a message."""
    number = min(set(range(len(batch.lines))).difference(text_lines))
    if batch.first_line is None:
        return f"the line at byte {batch.ends[number] - batch.sizes[number]:,} of {batch.address}"
    return f"line {batch.first_line + number:,} of {batch.address}"


def _field_text(line: bytes, parse: Callable[[bytes], Review]) -> str | None:
    """Return the text of a JSON line, with newlines replaced by spaces, or None if the line is malformed."""
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
