"""Reads batches of reviews from CSV by Python's reader in strict mode (RFC 4180).

A quoted field may hold newlines, so a record is not a line. An unbalanced quote would make one record of the rest of
the file. So a record has a maximum size, and reading continues at the next line after an error.
"""

import csv
from collections.abc import Iterator

from corpus.reading.batches import BATCH_TEXTS, MalformedCallback, TextBatch
from corpus.reading.compression import BLOCK_BYTES, DamagedArchiveError
from corpus.reading.formats import MAX_LINE_BYTES, Codes, MalformedLineError
from corpus.reading.lines import LongLine, split_lines, without_byte_order_mark
from corpus.reading.parsing import fields_parser, is_blank
from corpus.reading.sources import Range
from corpus.reading.storage import open_blocks
from corpus.reading.tally import EXCERPT_BYTES


class _RecordTooLongError(Exception):
    """A record of more than MAX_LINE_BYTES."""


class _Lines:
    """The lines of a file for a csv.reader, with the place, size and beginning of its current record."""

    def __init__(self, pieces: Iterator[list[bytes] | LongLine]) -> None:
        self._pieces = pieces
        self._waiting: Iterator[bytes] = iter(())
        self.read = 0
        self.bytes_read = 0
        self.begin()

    def begin(self) -> None:
        """A record begins with the next line."""
        self.first = self.read + 1
        self.begins = b""
        self.is_blank = False
        self.size = 0
        self.is_utf8 = True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._waiting, None)
        if line is None:
            piece = next(self._pieces)
            if isinstance(piece, LongLine):
                self._take(piece.begins)
                self.is_blank = False
                raise _RecordTooLongError
            self._waiting = iter(piece)
            line = next(self._waiting)
        self._take(line)
        if self.size > MAX_LINE_BYTES + 1:
            raise _RecordTooLongError
        try:
            return f"{line.decode()}\n"
        except UnicodeDecodeError:
            # The quotes of such a line still count: the end of the record depends on them.
            self.is_utf8 = False
            return f"{line.decode(errors='surrogateescape')}\n"

    def _take(self, line: bytes) -> None:
        self.read += 1
        self.size += len(line) + 1
        self.bytes_read += len(line) + 1
        if self.read == self.first:
            self.begins = line[:EXCERPT_BYTES]
            self.is_blank = is_blank(line)


def record_batches(part: Range, codes: Codes, malformed: MalformedCallback) -> Iterator[tuple[TextBatch, int]]:
    """The reviews of a whole file, each batch with the number of lines so far; a batch may be empty.

    Raises DamagedArchiveError after all whole records before the damage.
    """
    parse = fields_parser(part.format, codes, part.code)
    csv.field_size_limit(MAX_LINE_BYTES + 1)
    lines = _Lines(split_lines(without_byte_order_mark(open_blocks(part.path))))
    records = csv.reader(lines, delimiter=part.format.separator, strict=True)
    header = part.format.header
    texts: list[str] = []
    text_codes: list[int] = []
    kept: list[tuple[object, ...]] = []
    given = 0
    while True:
        lines.begin()
        try:
            fields = next(records, None)
            if fields is None:
                break
            if not header and not lines.is_blank:
                if not lines.is_utf8:
                    raise MalformedLineError("not_utf8")
                review = parse(fields)
                texts.append(review.text)
                text_codes.append(review.code)
                if part.format.keep:
                    kept.append(review.kept)
        except (MalformedLineError, csv.Error, _RecordTooLongError) as error:
            if not header and not lines.is_blank:
                malformed(_reason(error), lines.first, lines.begins)
        except DamagedArchiveError:
            yield TextBatch(texts, text_codes, lines.bytes_read - given, kept), lines.first - 1
            raise
        header = False
        if len(texts) == BATCH_TEXTS or lines.bytes_read - given > BLOCK_BYTES:
            yield TextBatch(texts, text_codes, lines.bytes_read - given, kept), lines.read
            texts, text_codes, kept, given = [], [], [], lines.bytes_read
    yield TextBatch(texts, text_codes, lines.bytes_read - given, kept), lines.read


def _reason(error: Exception) -> str:
    if isinstance(error, MalformedLineError):
        return error.reason
    return "not_csv" if isinstance(error, csv.Error) else "too_long"
