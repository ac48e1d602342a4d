"""Lines of a source as they were read, with the place after each; and which of them are text.

A line that is no text is left out and counted. Do not decode it with replacements: one binary file would fill a
vocabulary with words that nobody wrote.
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

LEAST_LINES = 1000
"""The share of malformed lines counts only after so many lines."""

_REASONS = "not UTF-8, with NUL, longer than 4 MiB, or without the text field"


class Batch(NamedTuple):
    """Some lines of a source, in their order."""

    address: str
    lines: list[bytes]
    """Without their newlines."""
    sizes: list[int]
    """(lines,): bytes of each, with its newline."""
    ends: list[int]
    """(lines,): the offset of the source after each."""
    first_line: int | None = None
    """The number of the first one, from 1; None where reading began inside of a file."""
    identity: str | None = None
    """The ETag of an object."""
    too_long: bool = False
    """Whether it is one line that was longer than MAX_LINE_BYTES, of which only the beginning is there."""
    ended: bool = False
    """Whether it stands for the end of a compressed file."""


def batch_of_lines(address: str, found: list[bytes] | LongLine, offset: int) -> Batch:
    """A batch of what `split_lines` found at an offset of a source."""
    if isinstance(found, LongLine):
        lines, sizes = [found.begins], [found.size + 1]
    else:
        lines, sizes = found, [len(line) + 1 for line in found]
    ends = list(accumulate(sizes, initial=offset))[1:]
    return Batch(address, lines, sizes, ends, too_long=isinstance(found, LongLine))


def sound_texts(batch: Batch, fields: Sequence[str] = ()) -> tuple[list[str], Sequence[int]]:
    """The lines that are text, or the texts in these fields of JSON objects, and the index of each in the batch."""
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
    """How many lines may be malformed: a share of all, `most`. It keeps an example for the sentence."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._example: str | None = None

    def check(self, batch: Batch, sound: Sequence[int], malformed: int, lines: int) -> None:
        """Raise DataError where too many of all lines up to a batch's end are malformed."""
        if self._example is None and len(sound) < len(batch.lines):
            self._example = _place(batch, sound)
        if self._example is not None and lines >= LEAST_LINES and malformed / lines > self._most:
            raise DataError(
                f"{malformed:,} of {lines:,} lines are malformed ({_REASONS}), more than {self._most:.0%}, such as "
                f"{self._example}; leave such files out of the sources, or begin a stream with a larger max_malformed"
            )


def describe_malformed(malformed: int, lines: int) -> str:
    """A sentence about lines that were left out."""
    return f"{malformed:,} of {plural(lines, 'line')} are malformed ({_REASONS}), and were left out"


def _place(batch: Batch, sound: Iterable[int]) -> str:
    """The first malformed line of a batch."""
    number = min(set(range(len(batch.lines))).difference(sound))
    if batch.first_line is None:
        return f"the line at byte {batch.ends[number] - batch.sizes[number]:,} of {batch.address}"
    return f"line {batch.first_line + number:,} of {batch.address}"


def _field_text(line: bytes, parse: Callable[[bytes], Review]) -> str | None:
    """On one line, as texts are."""
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
