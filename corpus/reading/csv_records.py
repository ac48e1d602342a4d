"""Reads batches of reviews from CSV with Python's `csv.reader` in strict mode (RFC 4180).

A quoted field can contain newlines, so a record can span several lines. One unbalanced quote would turn many records,
or the rest of the file, into one record. Three rules limit this. A record has a maximum size. A record that contains
whole records is malformed. After a malformed record, reading continues at the second line of this record.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from common.errors import DataError
from corpus.reading.batches import BATCH_TEXTS, MalformedCallback, TextBatch
from corpus.reading.compression import BLOCK_BYTES, DamagedArchiveError
from corpus.reading.formats import MAX_LINE_BYTES, Format, LabelEncoder, MalformedLineError
from corpus.reading.lines import LongLine, split_lines
from corpus.reading.parsing import Review, fields_parser, is_blank
from corpus.reading.sources import Range

_MIN_CONTAINED_RECORDS = 5
"""Minimum number of valid records inside one record that indicate an unclosed quote."""
_MIN_VALID_SHARE = 0.9
_MAX_REREAD_BYTES = 256 << 20
"""Number of bytes that may be read again after unclosed quotes, even in a small file."""


class _RecordTooLongError(Exception):
    """A record has more than MAX_LINE_BYTES."""


class _Lines:
    """Iterator over the lines of a file, for `csv.reader`.

    It keeps the lines of the current record, their size, and the number of the first one.
    """

    def __init__(self, pieces: Iterator[list[bytes] | LongLine], name: str) -> None:
        self._pieces, self._name = pieces, name
        self._waiting: deque[bytes | LongLine] = deque()
        self._reread_bytes = 0
        self.read = 0
        self.bytes_read = 0
        self.start_record()

    def start_record(self) -> None:
        """Start a record at the next line."""
        self.first = self.read + 1
        self.lines: list[bytes] = []
        self.long: LongLine | None = None
        self.size = 0
        self.is_utf8 = True

    def rewind_to_second_line(self) -> None:
        """Go back to the second line of the current record, which is then read next."""
        rest = self.lines[1:]
        back = sum(map(len, rest)) + len(rest)
        self._waiting.extendleft(reversed(rest))
        self.read, self.bytes_read = self.first, self.bytes_read - back
        self._reread_bytes += back
        if self._reread_bytes > _MAX_REREAD_BYTES + 4 * self.bytes_read:
            raise DataError(
                f"{self._name} has too many unclosed quotes, such as in line {self.first}; if quotes are part of the "
                "text, give --quoting none"
            )

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._waiting:
            piece = next(self._pieces)
            self._waiting.extend([piece] if isinstance(piece, LongLine) else piece)
        line = self._waiting.popleft()
        if isinstance(line, LongLine):
            if self.lines:  # the long line becomes a record by itself
                self._waiting.appendleft(line)
            else:
                self._append(line.begins)
                self.long = line
            raise _RecordTooLongError
        self._append(line)
        if self.size > MAX_LINE_BYTES + 1:
            raise _RecordTooLongError
        try:
            text = line.decode()
        except UnicodeDecodeError:
            # The quotes in such a line still matter, because they determine where the record ends.
            self.is_utf8 = False
            text = line.decode(errors="surrogateescape")
        return f"{text}\n"

    def _append(self, line: bytes) -> None:
        self.lines.append(line)
        self.read += 1
        self.size += len(line) + 1
        self.bytes_read += len(line) + 1


def csv_rows(lines: Sequence[bytes], separator: str) -> list[list[str]]:
    """Return the well-formed records of `lines`, up to a quote that is not closed within `lines`."""
    read, rows = _Lines(iter([[*lines]]), ""), list[list[str]]()
    for fields in _records(read, separator):
        if isinstance(fields, list):
            rows.append(fields)
        elif len(rows) > 1 and read.first - 1 + len(read.lines) == len(lines):
            break
    return rows


def _records(lines: _Lines, separator: str) -> Iterator[list[str] | MalformedLineError]:
    """Yield the fields of each well-formed record, and the error of each malformed record.

    Until the next record is requested, `lines.lines` has the lines of the current record.
    """
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        lines.start_record()
        try:
            yield next(reader)
        except StopIteration:
            return
        except (csv.Error, _RecordTooLongError) as error:
            lines.rewind_to_second_line()
            yield MalformedLineError("not_csv" if isinstance(error, csv.Error) else "too_long")


def record_batches(
    part: Range, blocks: Iterator[bytes], encoder: LabelEncoder, malformed: MalformedCallback
) -> Iterator[tuple[TextBatch, int]]:
    """Yield the reviews of a whole file in batches, each with the number of lines that were read so far.

    `blocks` has the decompressed bytes of the file, without a byte-order mark. A batch can be empty. Raises
    DamagedArchiveError after all complete records before the damage.
    """
    form = part.format
    parse, attempt = (fields_parser(form, each, part.code) for each in (encoder, encoder.twin()))
    csv.field_size_limit(MAX_LINE_BYTES + 1)
    lines = _Lines(split_lines(blocks), part.path)
    header = form.header
    texts: list[str] = []
    text_codes: list[int] = []
    kept: list[tuple[object, ...]] = []
    yielded_bytes = 0
    try:
        for fields in _records(lines, form.separator):
            if header:  # the first record with a nonempty cell
                header = not isinstance(fields, MalformedLineError) and not any(fields)
            elif isinstance(fields, MalformedLineError) or not is_blank(lines.lines[0]):
                try:
                    review = _review(fields, lines, parse, attempt, form)
                except MalformedLineError as error:
                    malformed(error.reason, lines.first, lines.long or lines.lines[0])
                else:
                    texts.append(review.text)
                    text_codes.append(review.code)
                    if form.keep:
                        kept.append(review.kept)
            if len(texts) == BATCH_TEXTS or lines.bytes_read - yielded_bytes > BLOCK_BYTES:
                yield TextBatch(texts, text_codes, lines.bytes_read - yielded_bytes, kept), lines.read
                texts, text_codes, kept, yielded_bytes = [], [], [], lines.bytes_read
    except DamagedArchiveError:
        yield TextBatch(texts, text_codes, lines.bytes_read - yielded_bytes, kept), lines.first - 1
        raise
    yield TextBatch(texts, text_codes, lines.bytes_read - yielded_bytes, kept), lines.read


_Parse = Callable[[Sequence[str]], Review]


def _review(
    fields: list[str] | MalformedLineError, lines: _Lines, parse: _Parse, attempt: _Parse, form: Format
) -> Review:
    if isinstance(fields, MalformedLineError):
        raise fields
    if form.value is not None and _contains_records(lines.lines, attempt, form):
        lines.rewind_to_second_line()
        raise MalformedLineError("not_csv")
    if not lines.is_utf8:
        raise MalformedLineError("not_utf8")
    return parse(fields)


def _contains_records(lines: Sequence[bytes], parse: _Parse, form: Format) -> bool:
    """Return whether nearly all lines after the first are valid records. If so, a quote was probably never closed."""
    if len(lines) <= _MIN_CONTAINED_RECORDS:
        return False
    valid = 0
    for fields in csv_rows(lines[1:], form.separator):
        with suppress(MalformedLineError):
            parse(fields)
            valid += 1
    return valid >= _MIN_VALID_SHARE * (len(lines) - 1)
