"""Reads batches of reviews from row groups of Parquet, only the columns that are needed.

Do not read a whole row group at once, because it can have a gigabyte. pyarrow takes long to load, so it is imported
only where there is Parquet.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import unquote

from corpus.reading.batches import BATCH_TEXTS, MalformedCallback, TextBatch
from corpus.reading.compression import DamagedArchiveError
from corpus.reading.formats import Codes, MalformedLineError
from corpus.reading.parsing import Review, row_parser
from corpus.reading.sources import Range
from corpus.reading.storage import open_range
from corpus.reading.tally import EXCERPT_BYTES

_READ_BYTES = 1 << 20
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def group_sizes(address: str) -> list[int] | None:
    """The bytes of each row group, decompressed; None where the file is damaged."""
    import pyarrow

    with open_range(address, ahead=0) as file:
        try:
            known = _open(file).metadata
        except (pyarrow.ArrowException, OSError):
            return None
        return [known.row_group(group).total_byte_size for group in range(known.num_row_groups)]


def row_batches(part: Range, codes: Codes, malformed: MalformedCallback) -> Iterator[tuple[TextBatch, int]]:
    """The reviews of some row groups, each batch with the number of rows so far; a batch may be empty.

    A damaged row group gives its rows before the damage, and all other groups give all of theirs. So the result does
    not depend on how groups are assigned to tasks. Raises DamagedArchiveError after all of them.
    """
    import pyarrow

    parse = row_parser(part.format, codes, part.code)
    names, given = list(dict.fromkeys(part.format.fields)), path_columns(part.path)
    done = 0
    fault = None
    with open_range(part.path, ahead=0) as file:
        try:
            parquet = _open(file)
        except (pyarrow.ArrowException, OSError) as error:
            raise DamagedArchiveError(f"its rows cannot be found: {error}") from error
        for group in range(part.start, parquet.num_row_groups if part.end < 0 else part.end):
            try:
                for block in parquet.iter_batches(BATCH_TEXTS, row_groups=[group], columns=names):
                    columns = [column_values(block, name, given) for name in part.format.fields]
                    reviews = _reviews(columns, parse, done, malformed)
                    done += block.num_rows
                    kept = [review.kept for review in reviews] if part.format.keep else ()
                    texts, text_codes = [review.text for review in reviews], [review.code for review in reviews]
                    yield TextBatch(texts, text_codes, block.nbytes, kept), done
            except (pyarrow.ArrowException, OSError) as error:
                fault = error
    if fault is not None:
        raise DamagedArchiveError(f"some of its rows cannot be read: {fault}") from fault


def _reviews(
    columns: Sequence[Sequence[Any]],
    parse: Callable[[Sequence[object]], Review],
    done: int,
    malformed: MalformedCallback,
) -> list[Review]:
    """The reviews of some rows, given as columns; `done` rows come before them."""
    reviews: list[Review] = []
    for number, values in enumerate(zip(*columns, strict=True), done + 1):
        try:
            reviews.append(parse(values))
        except MalformedLineError as error:
            malformed(error.reason, number, _begins(values))
    return reviews


def _open(file: BinaryIO) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(file, buffer_size=_READ_BYTES, pre_buffer=False)


def path_columns(address: str) -> dict[str, str | None]:
    """The columns that are in a file's path, as Hive and Spark write them: `rating=5/part-0.parquet`.

    https://arrow.apache.org/docs/python/generated/pyarrow.dataset.HivePartitioning.html
    """
    pairs = [part.split("=", 1) for part in PurePosixPath(address).parts[:-1] if "=" in part]
    return {unquote(name): None if value == _HIVE_NULL else unquote(value) for name, value in pairs}


def column_values(block: Any, name: str, given: Mapping[str, str | None]) -> list[Any]:
    """A column as Python values; a string that is not UTF-8 as bytes, a missing column as `given`, or else as nulls."""
    import pyarrow

    if name not in block.schema.names:
        return [given.get(name)] * block.num_rows
    column = block.column(name)
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return [_decoded(value) for value in column.cast(pyarrow.binary()).to_pylist()]


def _decoded(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _begins(values: Sequence[object]) -> bytes:
    """The beginning of the first value that is not null."""
    first = next((value for value in values if value is not None), "")
    return first[:EXCERPT_BYTES] if isinstance(first, bytes) else str(first)[:EXCERPT_BYTES].encode()
