"""Reads batches of reviews from files with one record per line, and from JSON arrays: an element counts as a line.

Most reviews are JSON lines, so a fast loop reads lines of the usual form. The loop passes all other lines to the exact
parser of `corpus.reading.parsing`. Do not remove the check for bool: True equals 1 in Python, but true is not a rating.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from corpus.reading.compression import DamagedArchiveError, compression
from corpus.reading.formats import Format, LabelEncoder, MalformedLineError
from corpus.reading.json_arrays import ArrayFile, require_syntax
from corpus.reading.lines import LongLine, range_blocks, split_lines, without_byte_order_marks
from corpus.reading.parsing import is_blank, line_parser
from corpus.reading.sources import Range
from corpus.reading.storage import explained_errors, open_blocks, open_range

BATCH_TEXTS = 256


class TextBatch(NamedTuple):
    """Batch of reviews.

    `texts` and `codes` (of ratings or labels) have one entry for each review. `raw_bytes` is the decompressed size of
    the lines that were read for the batch. For each review, `kept` has the values of the format's `keep` fields. It is
    empty if the format has no such fields.
    """

    texts: list[str]
    codes: list[int]
    raw_bytes: int
    kept: Sequence[tuple[object, ...]] = ()


MalformedCallback = Callable[[str, int, bytes | LongLine], None]
"""Function that is called for each malformed record.

Its arguments are the reason, the number (from 1) of the record's line in the range, and the record's first line.
"""

_Reviews = tuple[list[str], list[int], list[tuple[object, ...]]]
"""Texts, codes of ratings or labels, and values of the `keep` fields."""
_Read = Callable[[list[bytes], int, MalformedCallback], _Reviews]


def line_batches(
    part: Range, blocks: Iterator[bytes], encoder: LabelEncoder, malformed: MalformedCallback
) -> Iterator[tuple[TextBatch, int]]:
    """Yield the reviews of a range in batches, each with the number of lines of the range that were read so far.

    `blocks` has the decompressed bytes of the lines in the range, without the byte-order mark at the start of the file.
    The last batch is empty, and other batches can be empty. Raises DamagedArchiveError after the reviews of all
    complete lines before the damage.
    """
    read = _reader(part.format, encoder, part.code)
    if part.format.kind == "array":
        malformed = _elements_only(part.path, malformed)
    header = part.format.header and part.start == 0
    done = 0
    try:
        for lines in ArrayFile(blocks, part.path).elements() if part.format.kind == "array" else split_lines(blocks):
            if header:
                skipped = 1 if isinstance(lines, LongLine) else _header_lines(lines, part.format)
                header, done = skipped is None, done + (len(lines) if skipped is None else skipped)
                if skipped is None or isinstance(lines, LongLine):
                    continue
                del lines[:skipped]
            if isinstance(lines, LongLine):
                done += 1
                malformed("too_long", done, lines)
                continue
            for first in range(0, len(lines), BATCH_TEXTS):
                some = lines[first : first + BATCH_TEXTS]
                texts, text_codes, kept = read(some, done, malformed)
                done += len(some)
                yield TextBatch(texts, text_codes, sum(map(len, some)) + len(some), kept), done
    except DamagedArchiveError:
        yield TextBatch([], [], 0), done
        raise
    yield TextBatch([], [], 0), done


def _elements_only(name: str, malformed: MalformedCallback) -> MalformedCallback:
    """Return a callback for malformed elements of an array, which refuses elements with invalid syntax."""

    def count(reason: str, number: int, element: bytes | LongLine) -> None:
        if reason == "not_json" and isinstance(element, bytes):
            require_syntax(element, name, number)
        malformed(reason, number, element)

    return count


def _header_lines(lines: list[bytes], form: Format) -> int | None:
    """Return the number of lines up to and including the header, which is the first line with a nonempty cell.

    Returns None if no line has a nonempty cell.
    """
    empty = form.separator.encode() + b" \r\t"
    return next((number for number, line in enumerate(lines, 1) if line.strip(empty)), None)


def range_content(part: Range) -> Iterator[bytes]:
    """Yield the decompressed bytes of the lines in a range, without byte-order marks at the starts of lines."""
    if compression(part.path) or part.end < 0:
        yield from without_byte_order_marks(open_blocks(part.path))
        return
    start = max(part.start - 1, 0)
    with explained_errors(part.path), open_range(part.path, start, part.end - start) as file:
        blocks = range_blocks(file, part.start, part.end)
        yield from without_byte_order_marks(blocks)


def _reader(form: Format, encoder: LabelEncoder, code: int | None) -> _Read:
    parse = line_parser(form, encoder, code)

    def read(lines: list[bytes], done: int, malformed: MalformedCallback) -> _Reviews:
        texts: list[str] = []
        text_codes: list[int] = []
        kept: list[tuple[object, ...]] = []
        for number, line in enumerate(lines, done + 1):
            if is_blank(line):
                continue
            try:
                review = parse(line)
            except MalformedLineError as error:
                malformed(error.reason, number, line)
                continue
            texts.append(review.text)
            text_codes.append(review.code)
            if form.keep:
                kept.append(review.kept)
        return texts, text_codes, kept

    if form.kind in ("json", "array") and form.value is not None and not form.keep:
        return _json_reader(form.text, form.value, encoder, read)
    return read


def _json_reader(text_fields: tuple[str, ...], value_field: str, encoder: LabelEncoder, exact: _Read) -> _Read:
    """Return a fast reader of JSON lines. It passes lines of an unusual form to the slower reader `exact`."""
    from orjson import loads  # not at the top: slow to load, and only needed for JSON

    known, encode = encoder.known_codes, encoder.encode
    text_field = text_fields[0]
    several = len(text_fields) > 1

    def read(lines: list[bytes], done: int, malformed: MalformedCallback) -> _Reviews:
        texts: list[str] = []
        text_codes: list[int] = []
        for number, line in enumerate(lines, done):
            try:
                review = loads(line)
                text = " ".join([review[field] for field in text_fields]) if several else review[text_field]
                value = review[value_field]
                code = known.get(value)
                if text.__class__ is not str:
                    raise TypeError
                if code is None or value.__class__ is bool:
                    code = encode(value)
            except MalformedLineError as error:  # do not count the label a second time
                malformed(error.reason, number + 1, line)
                continue
            except (ValueError, KeyError, TypeError):
                some, some_codes, _ = exact([line], number, malformed)
                texts += some
                text_codes += some_codes
                continue
            texts.append(text)
            text_codes.append(code)
        return texts, text_codes, []

    return read
