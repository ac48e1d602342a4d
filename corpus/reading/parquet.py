"""Reads batches of reviews from row groups of Parquet files. Reads only the columns that are needed.

Do not read a whole row group at once, because it can have a gigabyte. Import pyarrow inside the functions that read
Parquet, because it is slow to load.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from common.errors import DataError
from corpus.reading.batches import BATCH_TEXTS, MalformedCallback, TextBatch
from corpus.reading.compression import DamagedArchiveError
from corpus.reading.formats import LabelEncoder, MalformedLineError
from corpus.reading.parsing import Review, row_parser
from corpus.reading.sources import Range
from corpus.reading.storage import open_range
from corpus.reading.tally import EXCERPT_BYTES

_READ_BYTES = 1 << 20
_BLOCK_BYTES = 64 << 20
"""Target size of the values in one block of rows, in bytes."""
_FIRST_ROWS = 16


def group_sizes(address: str) -> list[int] | None:
    """Return the decompressed size of each row group in bytes, or None if the file is damaged."""
    import pyarrow

    with open_range(address, ahead=0) as file:
        try:
            known = open_parquet(file).metadata
        except (pyarrow.ArrowException, OSError):
            return None
        return [known.row_group(group).total_byte_size for group in range(known.num_row_groups)]


def row_batches(part: Range, encoder: LabelEncoder, malformed: MalformedCallback) -> Iterator[tuple[TextBatch, int]]:
    """Yield the reviews of the row groups in a range in batches, each with the number of rows that were read so far.

    A batch can be empty. Raises DamagedArchiveError after the rows before the damage.
    """
    import pyarrow

    parse = row_parser(part.format, encoder, part.code)
    names = list(dict.fromkeys(part.format.fields))
    done = 0
    with open_range(part.path, ahead=0) as file:
        try:
            parquet = open_parquet(file)
        except (pyarrow.ArrowException, OSError) as error:
            raise DamagedArchiveError(f"unreadable metadata: {error}") from error
        if absent := [each for each in names if each not in parquet.schema_arrow.names]:
            raise DataError(
                f"the column {absent[0]} of {part.path} disappeared after the inspection; check what changed the file"
            )
        for group in range(part.start, parquet.num_row_groups if part.end < 0 else part.end):
            try:
                for block in blocks(parquet, group, names):
                    columns = [column_values(block, name) for name in part.format.fields]
                    reviews = _reviews(columns, parse, done, malformed)
                    done += block.num_rows
                    kept = [review.kept for review in reviews] if part.format.keep else ()
                    texts, text_codes = [review.text for review in reviews], [review.code for review in reviews]
                    yield TextBatch(texts, text_codes, block.nbytes, kept), done
            except (pyarrow.ArrowException, OSError) as error:
                raise DamagedArchiveError(f"unreadable rows: {error}") from error


def _reviews(
    columns: Sequence[Sequence[Any]],
    parse: Callable[[Sequence[object]], Review],
    done: int,
    malformed: MalformedCallback,
) -> list[Review]:
    """Return the reviews of rows, which are given as columns. `done` is the number of rows before these rows."""
    reviews: list[Review] = []
    for number, values in enumerate(zip(*columns, strict=True), done + 1):
        try:
            reviews.append(parse(values))
        except MalformedLineError as error:
            malformed(error.reason, number, _begins(values))
    return reviews


def open_parquet(file: BinaryIO) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(file, buffer_size=_READ_BYTES, pre_buffer=False)


def blocks(parquet: Any, group: int, names: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a row group, with only the columns `names`, in blocks.

    A block has at most BATCH_TEXTS rows and about _BLOCK_BYTES.
    """
    rows = max(1, min(BATCH_TEXTS, _BLOCK_BYTES // max(row_bytes(parquet, group, names), 1)))
    yield from parquet.iter_batches(rows, row_groups=[group], columns=names)


def row_bytes(parquet: Any, group: int, names: Sequence[str]) -> int:
    """Return the approximate size of a row of a row group in memory, in bytes, with only the columns `names`.

    In the file, a text that occurs many times is stored once, in a dictionary. So the first rows are read, too.
    """
    known = parquet.metadata.row_group(group)
    columns = [known.column(number) for number in range(known.num_columns)]
    stated: int = sum(
        each.total_uncompressed_size // each.num_values
        for each in columns
        if each.path_in_schema in names and each.num_values
    )
    first = next(parquet.iter_batches(_FIRST_ROWS, row_groups=[group], columns=[*dict.fromkeys(names)]), None)
    return max(stated, int(first.nbytes) // first.num_rows) if first else stated


def first_values(parquet: Any, name: str, most: int) -> list[Any]:
    """Return the first values of a column, at least `most` of them, or all if the column has fewer."""
    values: list[Any] = []
    for group in range(parquet.num_row_groups):
        for block in blocks(parquet, group, [name]):
            values += column_values(block, name)
            if len(values) >= most:
                return values
    return values


def column_values(block: Any, name: str) -> list[Any]:
    """Return the values of a column as Python objects. A string that is not UTF-8 is returned as bytes."""
    import pyarrow

    column = block.column(name)
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = [_decoded(value) for value in column.cast(pyarrow.binary()).to_pylist()]
    return values


def _decoded(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _begins(values: Sequence[object]) -> bytes:
    """Return the beginning of the first value that is not null, as an excerpt of a malformed row."""
    first = next((value for value in values if value is not None), "")
    return first[:EXCERPT_BYTES] if isinstance(first, bytes) else str(first)[:EXCERPT_BYTES].encode()
