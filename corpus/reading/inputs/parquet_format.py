"""Detects the format of a Parquet file: its fields by its schema."""

from collections import Counter
from typing import BinaryIO

from common.errors import DataError
from corpus.reading.formats import Format
from corpus.reading.inputs.detect import DetectedFormat, count_values
from corpus.reading.inputs.fields import choose_fields
from corpus.reading.parquet import first_values, open_parquet
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
    schema = opened.schema_arrow
    if twice := [each for each, count in Counter(schema.names).items() if count > 1]:
        raise DataError(f"two columns of {name} are named {twice[0]!r}; rename one")
    columns = {column.name: str(column.type) for column in schema}
    choice = choose_fields(name, columns, options, code)
    for each in choice.text:
        if "string" not in columns[each]:
            raise DataError(
                f"the column {each} of {name} is not text but {columns[each]}; name another by --text-field"
            )
    values: list[object] = []
    if choice.value is not None:
        try:
            values = first_values(opened, choice.value, _FIRST_ROWS)
        except (pa.ArrowException, OSError):
            return None
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
