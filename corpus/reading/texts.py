"""Reads all texts of some files in order, for prediction and for training on raw texts.

Prediction returns a result for each line of plain text, also for a blank line. So do not read plain text as
preprocessing does, because preprocessing skips blank lines.
"""

from collections.abc import Iterator, Sequence

from common.errors import DataError
from corpus.reading.batches import TextBatch
from corpus.reading.compression import DamagedArchiveError
from corpus.reading.encodings import check_encoding_of_malformed, is_utf8, refuse_other_encoding
from corpus.reading.formats import Format, LabelEncoder, MalformedLineError
from corpus.reading.lines import LongLine, check_line_ends, count_record, split_lines, without_byte_order_marks
from corpus.reading.parsing import one_line
from corpus.reading.ranges import read_batches
from corpus.reading.sources import UNLABELLED, WHOLE, Range, Source
from corpus.reading.storage import open_blocks
from corpus.reading.tally import Tally

_BLOCK_BYTES, _BLOCK_TEXTS = 4 << 20, 8192
"""Size of a batch for a model, in bytes and in texts. Larger batches are hardly faster, and delay the first results."""


def read_texts(sources: Sequence[Source], encoder: LabelEncoder, tally: Tally) -> Iterator[TextBatch]:
    """Yield the texts of the files, in order.

    Counts lines and malformed lines in `tally`. If a file is damaged or unreadable, yields all texts before the damage,
    then raises DataError. Also raises DataError at the end if malformed lines are in another encoding than UTF-8.
    """
    for source in sources:
        if source.format.kind == "text":
            yield from _read_plain_text(source, tally)
        else:
            part = Range(source.address, 0, WHOLE, source.format, source.code, source.test, source.size)
            yield from read_batches(part, encoder, tally)
        _refuse_damage(tally)
    check_encoding_of_malformed(tally)
    check_line_ends(tally)


def read_text_stream(
    blocks: Iterator[bytes], name: str, form: Format, encoder: LabelEncoder, tally: Tally
) -> Iterator[TextBatch]:
    """Yield the texts of a stream as they arrive; see `read_texts`. The format must not be Parquet."""
    if form.kind == "text":
        yield from plain_texts(blocks, name, tally)
    else:
        content = without_byte_order_marks(blocks)
        yield from read_batches(Range(name, 0, WHOLE, form, UNLABELLED, False), encoder, tally, content)
    _refuse_damage(tally)
    check_line_ends(tally)


def _refuse_damage(tally: Tally) -> None:
    for damage in tally.damage_reports():
        raise DataError(f"{damage}; download it again")


def join_batches(batches: Iterator[TextBatch]) -> Iterator[TextBatch]:
    """Join batches into larger batches. If `batches` raises DataError, all texts before it are yielded first."""
    texts: list[str] = []
    codes: list[int] = []
    kept: list[tuple[object, ...]] = []
    size = 0
    fault = None
    try:
        for batch in batches:
            texts += batch.texts
            codes += batch.codes
            kept += batch.kept
            size += batch.raw_bytes
            if len(texts) >= _BLOCK_TEXTS or size >= _BLOCK_BYTES:
                yield TextBatch(texts, codes, size, kept)
                texts, codes, kept, size = [], [], [], 0
    except DataError as error:
        fault = error
    if texts:
        yield TextBatch(texts, codes, size, kept)
    if fault is not None:
        raise fault


def plain_texts(blocks: Iterator[bytes], name: str, tally: Tally) -> Iterator[TextBatch]:
    """Yield the lines of plain text as texts.

    A line that is too long, is not UTF-8 or has several carriage returns is skipped, and `tally` counts it as
    malformed. Raises DataError if the first lines that are not UTF-8 are in another encoding.
    """
    done = 0
    accented: list[bytes] = []
    for lines in split_lines(without_byte_order_marks(blocks)):
        if isinstance(lines, LongLine):
            done += 1
            count_record(tally, "text", "too_long", name, 0, done, lines)
            continue
        whole = b"\n".join(lines)
        known = is_utf8(whole)
        if known and whole.count(b"\r") <= whole.count(b"\r\n") + 1:
            texts = [line.removesuffix("\r") for line in whole.decode().split("\n")]
        else:
            if not known and not tally.counts["malformed_by_reason.not_utf8"]:
                refuse_other_encoding(name, [accented, lines])
            texts = []
            for number, line in enumerate(lines, done + 1):
                try:
                    texts.append(one_line(line))
                except MalformedLineError as error:
                    count_record(tally, "text", error.reason, name, 0, number, line)
        if not accented and not whole.isascii():
            accented = [next(line for line in lines if not line.isascii())]
        done += len(lines)
        tally.counts["lines"] += len(texts)
        yield TextBatch(texts, [UNLABELLED] * len(texts), len(whole) + 1)


def _read_plain_text(source: Source, tally: Tally) -> Iterator[TextBatch]:
    before, damaged = tally.counts["lines"], False
    try:
        yield from plain_texts(open_blocks(source.address), source.address, tally)
    except DamagedArchiveError:
        damaged = True
    tally.add_range(source.address, 0, tally.counts["lines"] - before, damaged=damaged)
