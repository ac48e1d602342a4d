"""Detects the format of a file from its beginning. The module `fields` chooses the fields.

If the format is ambiguous, the error message names the option with which the user can choose it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import PurePosixPath
from typing import BinaryIO, NamedTuple

from common.errors import DataError
from corpus.reading.compression import compression
from corpus.reading.csv_records import csv_rows
from corpus.reading.formats import FASTTEXT_PREFIX, MISSING, Format, MalformedLineError, label_text
from corpus.reading.inputs.fields import choose_columns, choose_fields, have_value_column
from corpus.reading.inputs.json_files import (
    array_elements,
    begins,
    example_fields,
    is_multiline,
    json_objects,
    not_json_lines,
)
from corpus.reading.inputs.layouts import are_field_names, candidates
from corpus.reading.inputs.unsupported import refuse_joined_texts, refuse_unsupported
from corpus.reading.lines import without_byte_order_marks
from corpus.reading.parquet import first_values, open_parquet, row_bytes
from corpus.reading.parsing import is_blank, json_field, split_label
from corpus.reading.sources import FORMAT_CHOICES, ReadingOptions

PARQUET = b"PAR1"

_MAX_LINES = 1000
"""Number of lines, or of rows in Parquet, that are inspected."""
# Text is hardly ever a JSON object by accident, so a small share of JSON objects is enough to detect JSON.
_JSON_SHARE = 0.1
_NEARLY_ALL = 0.9
_JSON_NAMES = (".json", ".jsonl", ".ndjson")
_TABLE_NAMES = (".csv", ".tsv")
_SEPARATORS = (",", ";", "\t", "|")
_QUOTED = re.compile(rb'"([^"]|"")*"')
_ESCAPED_QUOTE = re.compile(rb'(?:^|[,;\t|])"[^"]*\\"[^",;\t|\s]')
"""A backslash and a quote inside a quoted cell. By RFC 4180, a quote at this place would be doubled or end the cell."""
_MAX_ESCAPED = 0.05
# https://dev.mysql.com/doc/refman/8.4/en/load-data.html#load-data-field-line-handling
_DOUBLE_QUOTES = (
    r"""double the quotes: python3 -c 'import re, sys; [print(re.sub(r"\\([\"\\\n])", """
    r"""lambda m: m[1].replace("\"", "\"\""), line), end="") for line in sys.stdin]' < OLD > NEW"""
)
_LABEL = re.compile(rb"(?:^|\s)" + FASTTEXT_PREFIX.encode())


class UnclearFormatError(DataError):
    """The lines of a file may be plain texts or the rows of a table."""


class DetectedFormat(NamedTuple):
    """Format of a file, and properties that its beginning or its metadata show."""

    format: Format
    labelled: bool
    values: Counter[str]
    """Counts of the labels or ratings in the beginning of the file."""
    rows: int | None = None
    """Number of records in the file, if its metadata state it."""
    plain_size: int | None = None
    """Decompressed size of the columns to read, in bytes, if the file's metadata state it."""


def detect_format(
    name: str, data: bytes, whole: bool, options: ReadingOptions, code: int | None = None
) -> DetectedFormat | None:
    """Detect the format of a file from its decompressed beginning `data`. Return None if `data` has no complete line.

    `whole` says whether `data` is the whole file. `code` is the class of all texts of the file, if it is known. Raises
    DataError if the file is unsupported or its format is ambiguous.
    """
    data = b"".join(without_byte_order_marks([data]))
    lines = data.split(b"\n", _MAX_LINES)
    if not whole or len(lines) > _MAX_LINES:
        lines.pop()
    lines = [line for line in lines if not is_blank(line)]
    refuse_unsupported(name, data, lines)
    may_be_json = options.kind in (None, "json") and options.separator is None and not has_table_name(name)
    if may_be_json and (elements := array_elements(name, data, lines, options.fields)):
        return _detect_json(name, "array", elements, options, code)
    if not lines:
        return None
    kind, separator = _detect_kind(name, lines, options, code)
    if kind == "json":
        return _detect_json(name, kind, lines, options, code)
    if kind in ("csv", "separated"):
        return _detect_columns(name, kind, separator, lines, options, code)
    if kind == "parquet":
        raise DataError(f"{name} is not a Parquet file; give another --format, or leave it out")
    if options.fields:
        raise DataError(
            f"{name} is read as {kind}, which has no fields; leave out the options that name fields, or give --format"
        )
    if kind == "fasttext":
        return DetectedFormat(Format(kind="fasttext"), True, _fasttext_labels(lines))
    if code is None:
        raise DataError(
            f"{name} is plain text, which has no class; give the file with --positive-input or --negative-input, not "
            "with --input"
        )
    refuse_joined_texts(name, lines)
    return DetectedFormat(Format(kind="text"), True, Counter())


def detect_parquet_format(
    name: str, file: BinaryIO, options: ReadingOptions, code: int | None
) -> DetectedFormat | None:
    """Detect the format of a Parquet file from its schema and first rows. Return None if the file is damaged."""
    import pyarrow as pa  # not at the top, because it is slow to load

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
        if not columns[each].removeprefix("dictionary<values=").startswith(("string", "large_string")):
            raise DataError(
                f"the column {each} of {name} has the type {columns[each]}, not text; convert it to strings, or name "
                "another with --text-field"
            )
    form = Format(kind="parquet", text=choice.text, value=choice.value, keep=options.keep)
    try:
        values = first_values(opened, choice.value, _MAX_LINES) if choice.value is not None else []
        row_size = row_bytes(opened, 0, form.fields) if opened.num_row_groups else 0
    except (pa.ArrowException, OSError):
        return None
    groups = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
    parts = [group.column(number) for group in groups for number in range(group.num_columns)]
    return DetectedFormat(
        form,
        choice.labelled,
        count_values(values),
        rows=opened.metadata.num_rows,
        plain_size=max(
            sum(part.total_uncompressed_size for part in parts if part.path_in_schema in form.fields),
            opened.metadata.num_rows * row_size,
        ),
    )


def count_values(values: Iterable[object]) -> Counter[str]:
    """Count the values after conversion to strings. Values that are neither a label nor a rating are skipped."""
    seen: Counter[str] = Counter()
    for value in values:
        with suppress(MalformedLineError):
            seen[label_text(value)] += 1
    return seen


def _detect_kind(name: str, lines: Sequence[bytes], options: ReadingOptions, code: int | None) -> tuple[str, str]:
    """Return the kind and the separator of a format, from the options or else from the lines."""
    if options.kind not in (None, "csv", "tsv"):
        return options.kind, ""
    separator = "\t" if options.kind == "tsv" else options.separator
    if separator is None:
        is_table = options.kind == "csv" or has_table_name(name)
        if not is_table and (kind := _kind_of_lines(name, lines)):
            return kind, ""
        separator = _separator_of_header(lines, options, code)
        if separator is None and not is_table:
            if code is not None and not have_value_column(lines, options):
                return "text", ""
            raise _unclear_format(name, lines, code)
        if separator and not is_table and code is not None and not options.fields:
            raise _unclear_format(name, lines, code)
    separator = separator or _separator_by_name(name, lines)
    quoted = options.quoting != "none" if separator in (",", ";", "|") else options.quoting not in (None, "none")
    return "csv" if quoted else "separated", separator


def _kind_of_lines(name: str, lines: Sequence[bytes]) -> str | None:
    """Return `json` or `fasttext` if the lines have this format, otherwise None."""
    if len(json_objects(lines)) >= _JSON_SHARE * len(lines):
        return "json"
    if 2 * sum(map(bool, map(_LABEL.search, lines))) > len(lines):
        return "fasttext"
    if _suffix(name) in _JSON_NAMES or is_multiline(lines[0]):
        raise not_json_lines(name, lines)
    return None


def _unclear_format(name: str, lines: Sequence[bytes], code: int | None) -> UnclearFormatError:
    advice = f"give --format ({', '.join(FORMAT_CHOICES)}) or --separator"
    if code is None:
        advice += ", or give plain texts of one class with --positive-input and --negative-input"
    else:
        advice = (
            "give --format text if each line is a text; for a table, give --format csv or tsv, or --separator, and "
            "--text-field with the name or number of the text column"
        )
    return UnclearFormatError(f"the format of {name} is not clear: its first line begins {begins(lines)}; {advice}")


def _separator_of_header(lines: Sequence[bytes], options: ReadingOptions, code: int | None) -> str | None:
    """Return the separator with which the first line is a header, or None if it is no header.

    A header has known field names, or the field names in the options.
    """
    for separator in _SEPARATORS:
        names = [each.strip() for row in csv_rows(lines[:1], separator) for each in row]
        given = options.fields and set(options.fields) <= set(names)
        # A text can look like a header. But below a header, most records have as many columns as the header.
        wide = [len(row) >= len(names) for row in csv_rows(lines[1:], separator)]
        below = code is None or given or (len(lines) > 1 and 2 * sum(wide) >= len(wide))
        if len(names) > 1 and below and (given or are_field_names(names, code)):
            return separator
    return None


def _separator_by_name(name: str, lines: Sequence[bytes]) -> str:
    """Choose the separator of a table without known column names by the file's name or the number of columns."""
    if _suffix(name) == ".tsv":
        return "\t"
    widths = {each: {len(row) for row in csv_rows(lines, each)} for each in _SEPARATORS}
    regular = [each for each, found in widths.items() if len(found) == 1 and found != {1}]
    if regular in ([], [","]):
        return ","
    if len(regular) > 1 or widths[","] != {1}:
        raise DataError(
            f"the separator of {name} is not clear: its first line begins {begins(lines)}; give --separator"
        )
    return regular[0]


def _fasttext_labels(lines: Sequence[bytes]) -> Counter[str]:
    """Return the number of occurrences of each label in fastText lines."""
    seen: Counter[str] = Counter()
    for line in lines:
        with suppress(MalformedLineError):
            seen[split_label(line)[0].decode("utf-8", "replace")] += 1
    return seen


def has_table_name(name: str) -> bool:
    return _suffix(name) in _TABLE_NAMES


def _suffix(name: str) -> str:
    """Return the suffix of a file name without the suffix of a compression: `.csv` for `reviews.csv.gz`."""
    path = PurePosixPath(name)
    return (path.with_suffix("") if compression(name) else path).suffix.lower()


def _detect_json(
    name: str, kind: str, lines: Sequence[bytes], options: ReadingOptions, code: int | None
) -> DetectedFormat:
    """Detect the fields of JSON lines (kind `json`), or of an array (`array`) with the first elements `lines`."""
    objects = json_objects(lines)
    if not objects:
        raise not_json_lines(name, lines)
    fields = example_fields(objects)
    if not options.fields and {"label", "probability"} <= fields.keys():
        raise DataError(
            f"{name} contains predictions of shoal predict, not checked labels; leave it out, or name its fields with "
            "--text-field and --label-field"
        )
    choice = choose_fields(name, fields, options, code)
    return DetectedFormat(
        Format(kind=kind, text=choice.text, value=choice.value, keep=options.keep),
        choice.labelled,
        count_values([] if choice.value is None else [json_field(each, choice.value) for each in objects]),
    )


def _detect_columns(
    name: str, kind: str, separator: str, lines: Sequence[bytes], options: ReadingOptions, code: int | None
) -> DetectedFormat:
    if kind == "separated" and options.quoting is None and len(separator) == 1:
        kind = "csv" if _is_quoted(name, lines, separator.encode()) else kind
    if kind == "csv":
        escaped = [line for line in lines if _ESCAPED_QUOTE.search(line)]
        if len(escaped) > _MAX_ESCAPED * len(lines):
            raise DataError(f"quotes of {name} are escaped by backslashes, as in {begins(escaped)}; {_DOUBLE_QUOTES}")
        rows = csv_rows(lines, separator)
    else:
        rows = [line.decode("utf-8", "replace").removesuffix("\r").split(separator) for line in lines]
    rows = [row for row in rows if any(row)]
    if not rows:
        raise DataError(
            f"every record of {name} is empty: the first line begins {begins(lines)}; give --quoting none if quotes "
            "are part of the text, or leave the file out"
        )
    header = [column.strip() for column in rows[0]]
    named = any(candidates(header)) if not options.fields else are_field_names(header, code)
    named = named or not all(each.isdecimal() for each in options.fields)
    width = len(header) if named else Counter(map(len, rows)).most_common(1)[0][0]
    if kind == "separated":
        _refuse_escaped_newlines(name, lines, separator.encode(), width)
    whole = [row for row in rows if len(row) == width]
    if width < 2 and code is None:
        raise DataError(
            f"the first record of {name} has no separator {separator!r}: it begins {begins(lines)}; give "
            "a different --separator, or a file with a text and a rating or label"
        )
    if 2 * len(whole) < len(rows):
        raise DataError(
            f"the first line of {name} names {width} columns, but most records have a different number; quote the "
            "texts that contain the separator, or name all columns"
        )
    if twice := next((each for each in header if named and each and header.count(each) > 1), None):
        raise DataError(f"two columns of {name} are named {twice!r}; rename one")
    columns = header if named else [str(number) for number in range(1, width + 1)]
    headers = [header] if named else []
    records = [dict(zip(columns, row, strict=True)) for row in whole if [cell.strip() for cell in row] not in headers]
    if named:
        fields = {column: records[0][column] if records else "" for column in columns}
        choice = choose_fields(name, fields, options, code)
    else:
        choice = choose_columns(name, whole, options, code)
    form = Format(
        kind=kind,
        text=choice.text,
        value=choice.value,
        keep=options.keep,
        header=named,
        separator=separator,
        columns=tuple(columns),
    )
    found = [] if choice.value is None else [record[choice.value] for record in records]
    values = count_values([value for value in found if value.strip(" \t\r\n").lower() not in MISSING])
    return DetectedFormat(form, choice.labelled, values)


def _refuse_escaped_newlines(name: str, lines: Sequence[bytes], separator: bytes, width: int) -> None:
    """Raise DataError if a line ends with a backslash, and this line or the next line has too few columns."""
    for line, following in pairwise(lines):
        escaped = (len(line) - len(line.rstrip(b"\\"))) % 2
        if escaped and min(line.count(separator), following.count(separator)) < width - 1:
            # https://dev.mysql.com/doc/refman/8.4/en/load-data.html#load-data-field-line-handling
            raise DataError(
                f"in {name} a newline is escaped by a backslash, as MySQL writes it, in the line that begins "
                f"{begins([line])}; export the table as CSV with quoted values"
            )


def _is_quoted(name: str, lines: Sequence[bytes], separator: bytes) -> bool:
    """Return whether quotes enclose the cells between separators.

    Raises DataError if only some of the quotes enclose cells, or if a quoted cell might contain a newline.
    """
    cells = [cell for line in lines for cell in line.removesuffix(b"\r").split(separator) if b'"' in cell]
    most = 2 * sum(separator + b'"' in separator + line for line in lines) > len(lines)
    # Excel quotes only cells that contain a quote or a comma.
    usual = most or any(b'""' in cell for cell in cells) or all(b"," in cell for cell in cells)
    if cells and usual and all(map(_QUOTED.fullmatch, cells)):
        return True
    if most and not any(b'\\"' in cell for cell in cells):
        unclear = [line for line in lines if b'"' in line]
    else:
        columns = Counter(line.count(separator) for line in lines)
        width = max(lines[0].count(separator), columns.most_common(1)[0][0])
        unclear = [line for line in lines if line.count(b'"') % 2 and line.count(separator) < width]
    if unclear:
        raise DataError(
            f"it is not clear how {name} uses quotes, as in {begins(unclear)}; give --quoting doubled if values are "
            "quoted, or --quoting none if quotes are part of the text"
        )
    return False
