"""Reads batches of reviews from row groups of Parquet, only the columns that are needed.

Do not read a whole row group at once, because it can have a gigabyte. pyarrow takes long to load, so it is imported
only where there is Parquet.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import unquote

from common.errors import DataError
from corpus.reading.batches import BATCH_TEXTS, MalformedCallback, TextBatch
from corpus.reading.compression import DamagedArchiveError
from corpus.reading.formats import Codes, MalformedLineError
from corpus.reading.parsing import Review, row_parser
from corpus.reading.sources import Range
from corpus.reading.storage import open_range
from corpus.reading.tally import EXCERPT_BYTES

_READ_BYTES = 1 << 20
_BLOCK_BYTES = 64 << 20
"""Of a block's values."""
_USUAL_DICTIONARY_BYTES = 2 << 20
"""Writers end a dictionary at 1 MiB, and then write the values themselves."""
_PAGE_HEADER_BYTES = 16
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def group_sizes(address: str) -> list[int] | None:
    """The bytes of each row group, decompressed; None where the file is damaged."""
    import pyarrow

    with open_range(address, ahead=0) as file:
        try:
            known = open_parquet(file).metadata
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
            parquet = open_parquet(file)
        except (pyarrow.ArrowException, OSError) as error:
            raise DamagedArchiveError(f"its rows cannot be found: {error}") from error
        known = column_types(parquet.schema_arrow)
        if absent := [each for each in names if each not in known and each not in given]:
            raise DataError(f"{part.path} has no column {absent[0]}, which it had before; look for what changed it")
        for group in range(part.start, parquet.num_row_groups if part.end < 0 else part.end):
            try:
                for block in blocks(parquet, file, group, names):
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
            malformed(error.reason, number, _begins(values), 1)
    return reviews


def open_parquet(file: BinaryIO) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(file, buffer_size=_READ_BYTES, pre_buffer=False)


def column_types(schema: Iterable[Any]) -> dict[str, Any]:
    """The types of the columns, and of the fields inside structs by their paths with dots (`review.body`)."""
    import pyarrow

    found = {}
    for column in schema:
        if pyarrow.types.is_struct(column.type):
            inner = column_types(each for each in column.type if "." not in each.name)
            found.update({f"{column.name}.{name}": kind for name, kind in inner.items()})
        else:
            found[column.name] = column.type
    return found


def blocks(parquet: Any, file: BinaryIO, group: int, names: Sequence[str]) -> Iterator[Any]:
    """The rows of a row group, these columns alone, in blocks of at most BATCH_TEXTS rows and about _BLOCK_BYTES.

    `file` is the one that was opened as `parquet`.
    """
    known = parquet.metadata.row_group(group)
    columns = [known.column(number) for number in range(known.num_columns)]
    row_bytes = sum(_value_bytes(file, each) for each in columns if each.path_in_schema in names and each.num_values)
    rows = max(1, min(BATCH_TEXTS, _BLOCK_BYTES // max(row_bytes, 1)))
    yield from parquet.iter_batches(rows, row_groups=[group], columns=names)


def _value_bytes(file: BinaryIO, column: Any) -> int:
    """About how many bytes a value of a column needs: the mean, or what a dictionary has, each value of which may be
    that of many rows."""
    size, values = int(column.total_uncompressed_size), int(column.num_values)
    mean = size // values + 1
    if not column.has_dictionary_page or size * BATCH_TEXTS <= _BLOCK_BYTES:
        return mean
    # A page begins with two fields of Thrift's compact protocol, 0x15 and a number each: its type, its plain size.
    # https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
    file.seek(max(column.dictionary_page_offset, 0))
    begins = file.read(_PAGE_HEADER_BYTES)
    if begins[:1] != b"\x15" or begins[2:3] != b"\x15":
        return size
    plain = 0
    for place, byte in enumerate(begins[3:]):
        plain |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return mean if plain >> 1 <= _USUAL_DICTIONARY_BYTES else max(mean, plain >> 1)


def first_values(parquet: Any, file: BinaryIO, name: str, given: Mapping[str, str | None], most: int) -> list[Any]:
    """The values of a column in the first rows, at least `most` where there are so many."""
    values: list[Any] = []
    for group in range(parquet.num_row_groups):
        for block in blocks(parquet, file, group, [name]):
            values += column_values(block, name, given)
            if len(values) >= most:
                return values
    return values


def path_columns(address: str) -> dict[str, str | None]:
    """The columns that are in a file's path, as Hive and Spark write them: `rating=5/part-0.parquet`.

    https://arrow.apache.org/docs/python/generated/pyarrow.dataset.HivePartitioning.html
    """
    pairs = [part.split("=", 1) for part in PurePosixPath(address).parts[:-1] if "=" in part]
    return {unquote(name): None if value == _HIVE_NULL else unquote(value) for name, value in pairs}


def column_values(block: Any, name: str, given: Mapping[str, str | None]) -> list[Any]:
    """A column as Python values; a string that is not UTF-8 as bytes, a column of the path as `given`."""
    import pyarrow

    if name in given and name not in column_types(block.schema):
        return [given[name]] * block.num_rows
    column, kind = _column(block, name), pyarrow.types
    if kind.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind.is_decimal(column.type):
        return [
            None if value is None else int(value) if value == int(value) else float(value)
            for value in column.to_pylist()
        ]
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:
        values = column.cast(pyarrow.binary()).to_pylist()
    # Impala and others write texts without the annotation that they are UTF-8:
    # https://docs.cloudera.com/documentation/enterprise/5-11-x/topics/impala_parquet_annotate_strings_utf8.html
    return [_decoded(value) if isinstance(value, bytes) else value for value in values]


def _column(block: Any, name: str) -> Any:
    from pyarrow.compute import struct_field

    if name in block.schema.names:
        return block.column(name)
    column = next(each for each in block.schema.names if name.startswith(f"{each}."))
    return struct_field(block.column(column), name.removeprefix(f"{column}.").split("."))


def _decoded(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _begins(values: Sequence[object]) -> bytes:
    """The beginning of the first value that is not null."""
    first = next((value for value in values if value is not None), "")
    return first[:EXCERPT_BYTES] if isinstance(first, bytes) else str(first)[:EXCERPT_BYTES].encode()
