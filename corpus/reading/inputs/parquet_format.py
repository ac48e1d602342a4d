"""Detects the format of a Parquet file: its fields by its schema, and those in its path."""

from collections import Counter
from collections.abc import Mapping
from typing import BinaryIO

from common.errors import DataError
from corpus.reading.formats import Format
from corpus.reading.inputs.detect import DetectedFormat, count_values
from corpus.reading.inputs.fields import choose_fields
from corpus.reading.parquet import column_types, first_values, open_parquet, path_columns
from corpus.reading.sources import ReadingOptions

_FIRST_ROWS = 1000


def detect_parquet_format(
    name: str, file: BinaryIO, options: ReadingOptions, code: int | None
) -> DetectedFormat | None:
    """The format of a Parquet file, by its schema and first rows; None where it is damaged."""
    import pyarrow as pa  # only where there is Parquet: it takes long to load

    if options.kind not in (None, "parquet"):
        raise DataError(f"{name} is Parquet, not {options.kind}; leave out --format")
    try:
        opened = open_parquet(file)
    except (pa.ArrowException, OSError):
        return None
    if twice := [each for each, count in Counter(opened.schema_arrow.names).items() if count > 1]:
        raise DataError(f"two columns of {name} are named {twice[0]!r}; rename one")
    given = path_columns(name)
    columns = dict.fromkeys(given, "string") | {
        column: str(kind) for column, kind in column_types(opened.schema_arrow).items()
    }
    choice = choose_fields(name, columns, options, code)
    for each in choice.text:
        if not any(kind in columns[each] for kind in ("string", "binary")):
            raise DataError(
                f"the column {each} of {name} is not text but {columns[each]}; name another by --text-field"
            )
    values: list[object] = []
    if choice.value is not None:
        try:
            values = first_values(opened, file, choice.value, given, _FIRST_ROWS)
        except (pa.ArrowException, OSError):
            return None
    _refuse_other_values(name, choice.value, given, values)
    form = Format(kind="parquet", text=choice.text, value=choice.value, keep=options.keep)
    groups = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
    parts = [group.column(number) for group in groups for number in range(group.num_columns)]
    return DetectedFormat(
        form,
        choice.labelled,
        count_values(values),
        rows=opened.metadata.num_rows,
        plain_size=sum(part.total_uncompressed_size for part in parts if part.path_in_schema in form.fields),
        notes=choice.notes,
    )


def _refuse_other_values(name: str, column: str | None, given: Mapping[str, str | None], values: list[object]) -> None:
    """Refuse a file whose column has other values than its path gives that column."""
    of_path = given.get(column) if column is not None else None
    if of_path is not None and (other := next((each for each in count_values(values) if each != of_path), None)):
        raise DataError(
            f"the path of {name} says that {column} is {of_path!r}, but the file's own column {column} has {other!r}; "
            "rename the folder or the column"
        )
