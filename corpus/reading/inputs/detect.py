"""Detects the format of a file from its beginning: the kind of file here, its fields by `fields`.

Bytes in, a format out. Do not guess: where the lines are not clear, the error asks for an option.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple

from common.errors import DataError
from corpus.reading.compression import DamagedArchiveError, compression
from corpus.reading.csv_records import csv_rows, separator_line
from corpus.reading.formats import BYTE_ORDER_MARK, FASTTEXT_PREFIX, Format, MalformedLineError, label_text
from corpus.reading.inputs.fields import (
    FieldChoice,
    OneValueError,
    are_field_names,
    choose_columns,
    choose_fields,
    has_field_name,
    header_notes,
    is_header_row,
    name_notes,
    refuse_unknown_header,
    with_column_names,
)
from corpus.reading.inputs.names import are_known_names
from corpus.reading.inputs.unsupported import (
    QUOTED,
    are_quoted,
    refuse_answers,
    refuse_escaped_newlines,
    refuse_list_of_reviews,
    refuse_other_json,
    refuse_quoted_texts,
    refuse_undecodable,
    refuse_unsupported,
)
from corpus.reading.json_values import json_objects, paths, split_values
from corpus.reading.parsing import is_blank, json_field, split_label
from corpus.reading.sources import FORMAT_CHOICES, ReadingOptions

PARQUET = b"PAR1"

_MOST_LINES = 1000
# A line is a JSON object by no accident: a few of them among broken lines are enough.
_JSON_SHARE = 0.1
_MOST = 0.9
_SHOWN_LETTERS = 60
_CSV_SEPARATORS = (",", ";")
_DECIMAL = re.compile(rb"[0-9],[0-9]")
_LABEL = re.compile(rb"(?:^|\s)" + FASTTEXT_PREFIX.encode())


class _Table(NamedTuple):
    """How lines are records of columns: `kind`, `separator` and `escapes` of their Format."""

    kind: str
    separator: str
    escapes: bool


class DetectedFormat(NamedTuple):
    """The format of a file, and what its beginning shows."""

    format: Format
    labelled: bool
    values: Counter[str]
    """The labels or ratings in its beginning, with their counts."""
    rows: int | None = None
    """The number of its records, where the file has it."""
    plain_size: int | None = None
    """The decompressed bytes of the columns that are read, where the file has them."""
    notes: tuple[str, ...] = ()
    """Sentences on choices that other fields fit, too."""


def detect_format(
    name: str, data: bytes, whole: bool, options: ReadingOptions, code: int | None = None
) -> DetectedFormat | None:
    """The format of a file that begins with `data`, decompressed; None where these have no whole line.

    `whole` means that the file ends with `data`. `code` is the class of all of its texts, where that is known. Raises
    DataError for a file that cannot be read, or whose format is not clear.
    """
    refuse_unsupported(name, data)
    data = data.removeprefix(BYTE_ORDER_MARK)
    lines = data.split(b"\n", _MOST_LINES)
    if not whole or len(lines) > _MOST_LINES:
        lines.pop()
    lines = [line for line in lines if not is_blank(line)]
    if options.kind in (None, "json") and (values := _json_values(data, lines)):
        return _detect_json(name, values, options, code, values=True)
    if not lines:
        return None
    refuse_undecodable(name, lines)
    refuse_answers(name, lines, options.fields)
    kind, separator = _excel_kind(lines, options) or _detect_kind(name, lines, options, code)
    if kind == "json":
        return _detect_json(name, lines, options, code)
    if kind in ("csv", "separated"):
        return _detect_columns(name, _table(kind, separator, lines, options), lines, options, code)
    if kind == "parquet":
        raise DataError(f"{name} is not a Parquet file; give another --format, or leave it out")
    if options.fields:
        raise DataError(
            f"{name} has no fields: it is read as {kind}; leave out the options that name some, or give --format"
        )
    if kind == "fasttext":
        return DetectedFormat(Format(kind="fasttext"), True, _fasttext_labels(lines))
    if code is None:
        raise DataError(
            f"a line of plain text has no class; give {name} by --positive-input or --negative-input, not by --input"
        )
    return DetectedFormat(Format(kind="text"), True, Counter())


def _values(records: Sequence[dict[str, object]], choice: FieldChoice) -> Counter[str]:
    """The values of records with their counts; see `count_values`."""
    return count_values([] if choice.value is None else [record.get(choice.value) for record in records])


def count_values(values: Iterable[object]) -> Counter[str]:
    """Values as text, with their counts; without those that cannot be a label or rating."""
    seen: Counter[str] = Counter()
    for value in values:
        with suppress(MalformedLineError):
            seen[label_text(value)] += 1
    return seen


def _excel_kind(lines: list[bytes], options: ReadingOptions) -> tuple[str, str] | None:
    """Kind and separator of lines whose first one is for Excel alone, without that."""
    separator = separator_line(lines[0]) if len(lines) > 1 and options.kind in (None, "csv") else None
    if separator is None:
        return None
    del lines[0]
    return "csv", separator


def _detect_kind(name: str, lines: Sequence[bytes], options: ReadingOptions, code: int | None) -> tuple[str, str]:
    """Kind and separator, by the options or else by the lines."""
    if options.kind == "tsv":
        return "separated", "\t"
    if options.kind is not None:
        separator = options.separator or (options.kind == "csv" and _csv_separator(lines, options, code)) or ","
        return options.kind, separator
    if options.separator is not None:
        return ("csv" if options.separator in _CSV_SEPARATORS else "separated"), options.separator
    in_array = lines[0].lstrip().startswith(b"[")
    if not in_array and len(json_objects(lines)) >= _JSON_SHARE * len(lines):
        return "json", ""
    refuse_other_json(name, lines)
    suffix = _suffix(name)
    may_be_table = suffix == ".csv" or code is None
    if named := (_named_separator if may_be_table else _known_separator)(lines, options, code):
        return ("separated" if named == "\t" else "csv"), named
    begin = sum(line.startswith(FASTTEXT_PREFIX.encode()) for line in lines)
    if 2 * begin > len(lines) or _nearly_all(_LABEL.search(line) is not None for line in lines):
        return "fasttext", ""
    if suffix == ".tsv" or (suffix != ".csv" and code is None and _nearly_all(b"\t" in line for line in lines)):
        return "separated", "\t"
    usual = _csv_separator(lines, options, code) if may_be_table else None
    if suffix == ".csv" or usual:
        return "csv", usual or ","
    if code is not None:
        refuse_quoted_texts(name, lines)
        return "text", ""
    begins = lines[0][:_SHOWN_LETTERS].decode("utf-8", "replace")
    raise DataError(
        f"the format of {name} is not clear: its first line begins {begins!r}; give --format "
        f"({', '.join(FORMAT_CHOICES)}) or --separator; give plain texts of one class by --positive-input and "
        "--negative-input"
    )


def _fasttext_labels(lines: Sequence[bytes]) -> Counter[str]:
    """The labels of fastText's lines, with their counts."""
    seen: Counter[str] = Counter()
    for line in lines:
        with suppress(MalformedLineError):
            seen[split_label(line)[0].decode("utf-8", "replace")] += 1
    return seen


def _nearly_all(each: Iterable[bool]) -> bool:
    flags = list(each)
    return sum(flags) >= _MOST * len(flags)


def _suffix(name: str) -> str:
    """The ending of the name, without that of the compression."""
    path = PurePosixPath(name)
    return (path.with_suffix("") if compression(name) else path).suffix.lower()


def _json_values(data: bytes, lines: Sequence[bytes]) -> list[bytes]:
    """The first values of JSON that is not an object a line; none of anything else."""
    first = data.lstrip()[:1]
    if first != b"[" and (first != b"{" or (lines and len(json_objects(lines)) >= _JSON_SHARE * len(lines))):
        return []
    values: list[bytes] = []
    with suppress(DamagedArchiveError):  # the beginning ends within a value
        for some in split_values(iter([data])):
            values += some if isinstance(some, list) else ()
    return values[:_MOST_LINES] if json_objects(values) else []


def _detect_json(
    name: str, lines: Sequence[bytes], options: ReadingOptions, code: int | None, *, values: bool = False
) -> DetectedFormat:
    objects = json_objects(lines)
    fields: dict[str, str] = {}
    for each in objects:
        for path, value in paths(each):
            with suppress(RecursionError):  # a value nested this deeply is neither a text nor a rating
                fields.setdefault(path, " ".join(str(value).split()))
    if not objects:
        refuse_other_json(name, lines)
        begins = lines[0][:_SHOWN_LETTERS].decode("utf-8", "replace")
        raise DataError(f"{name} holds no JSON object a line: its first line begins {begins!r}; give another --format")
    try:
        choice = choose_fields(name, fields, options, code)
    except DataError:
        refuse_list_of_reviews(name, objects)
        raise
    return DetectedFormat(
        Format(kind="json", text=choice.text, value=choice.value, keep=options.keep, values=values),
        choice.labelled,
        count_values([] if choice.value is None else [json_field(each, choice.value) for each in objects]),
        notes=choice.notes,
    )


def _rows(form: _Table, lines: Sequence[bytes]) -> list[list[str]]:
    """The records in the lines that have the most frequent number of columns."""
    if form.kind == "csv":
        rows = csv_rows(lines, form.separator, escapes=form.escapes, may_end_within=True)
    else:
        rows = [line.decode("utf-8", "replace").removesuffix("\r").split(form.separator) for line in lines]
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
    return [row for row in rows if len(row) == width and any(row)]


def _table(kind: str, separator: str, lines: Sequence[bytes], options: ReadingOptions) -> _Table:
    """How values are quoted, by the option, or else so that most lines are records."""
    if options.quoting is not None:
        return _Table("separated" if options.quoting == "none" else "csv", separator, options.quoting == "backslash")
    plain, content = _Table(kind, separator, False), b"".join(lines)
    if b'"' not in content or (kind == "separated" and len(separator) > 1):
        return plain
    able = [plain, _Table("csv", separator, False), *([_Table("csv", separator, True)] if b'\\"' in content else [])]
    if set(able) == {plain}:
        return plain
    read = {
        each: sum(1 + sum(cell.count("\n") for cell in row) for row in _rows(each, lines) if len(row) > 1)
        for each in able
    }
    best = max(able, key=read.__getitem__)
    if kind == "separated" and best == plain and read[able[1]] == read[best] and _are_quoted(lines, separator.encode()):
        return able[1]
    return best


def _are_quoted(lines: Sequence[bytes], separator: bytes) -> bool:
    """Whether quotes around values are no letters: most lines have some, or only those values that Excel quotes when it
    saves a tab-separated text, with a comma or a quote in them."""
    values = [value for line in lines for value in line.removesuffix(b"\r").split(separator) if b'"' in value]
    if 2 * sum(separator + b'"' in separator + line for line in lines) > len(lines):
        return True
    return all(QUOTED.fullmatch(value) and (b"," in value or b'""' in value) for value in values)


def _named_separator(lines: Sequence[bytes], options: ReadingOptions, code: int | None) -> str | None:
    """The separator with which the first line is a header of known names, or of those in the options."""
    for separator in (*_CSV_SEPARATORS, "\t", "|"):
        (names,) = csv_rows(lines[:1], separator, escapes=False) or [[]]
        given = options.fields and set(options.fields) <= set(names)
        if len(names) > 1 and (given or are_field_names([name.strip() for name in names], code)):
            return separator
    return None


def _known_separator(lines: Sequence[bytes], options: ReadingOptions, code: int | None) -> str | None:
    """The separator of a table of texts of one class, where its first line has known names only, or those in the
    options, and the others are records below them."""
    separator = _named_separator(lines, options, code)
    (names,) = csv_rows(lines[:1], separator or ",", escapes=False) or [[]]
    if not (separator and options.fields) and not are_known_names([each.strip() for each in names]):
        return None
    if separator is None:
        return "," if lines[1:] and are_quoted(lines[1:]) else None
    rows = _rows(_table("separated" if separator == "\t" else "csv", separator, lines, options), lines)
    return separator if rows[1:] and rows[0] == names else None


def _csv_separator(lines: Sequence[bytes], options: ReadingOptions, code: int | None) -> str | None:
    """The separator of a header with known names, or the first usual one with which these lines are clearly CSV; None
    where there is none."""
    clear = (each for each in _CSV_SEPARATORS if _is_csv(each, lines, options))
    return _named_separator(lines, options, code) or _beside_decimals(lines) or next(clear, None)


def _beside_decimals(lines: Sequence[bytes]) -> str | None:
    """The semicolon, where it makes the same columns of all lines and the comma does not, or only within numbers."""
    comma, semicolon = ({len(row) for row in csv_rows(lines, each, escapes=False)} for each in _CSV_SEPARATORS)
    regular = len(semicolon) == 1 and 1 not in semicolon
    decimals = _nearly_all(_DECIMAL.search(line) is not None for line in lines)
    return ";" if regular and (len(comma) > 1 or decimals) else None


def _is_csv(separator: str, lines: Sequence[bytes], options: ReadingOptions) -> bool:
    """Whether these lines are CSV beyond doubt: with a rating or label, and the same few columns in all."""
    if not _nearly_all(separator.encode() in line for line in lines):
        return False
    rows = _rows(_table("csv", separator, lines, options), lines)
    if not rows or len(rows[0]) < 2:
        return False
    try:
        choose_columns("", rows, options, None)
    except DataError:
        return False
    return len(rows) >= _MOST * len(lines)


def _detect_columns(
    name: str, table: _Table, lines: Sequence[bytes], options: ReadingOptions, code: int | None
) -> DetectedFormat:
    kind, separator, escapes = table
    rows = _rows(table, lines)
    (header,) = csv_rows(lines[:1], separator, escapes=escapes) or [[]] if len(separator) == 1 else [[]]
    if rows and len(header) not in (0, len(rows[0])) and are_field_names([each.strip() for each in header], code):
        raise DataError(
            f"the first line of {name} names {len(header)} columns, but most of its records have {len(rows[0])}; quote "
            "the texts that hold the separator, or name all columns"
        )
    if not rows or (len(rows[0]) < 2 and code is None):
        begins = lines[0][:_SHOWN_LETTERS].decode("utf-8", "replace")
        raise DataError(
            f"the first record of {name} has no separator {separator!r}: it begins {begins!r}; give another --separator"
        )
    if kind == "separated":
        refuse_escaped_newlines(name, lines, separator.encode(), len(rows[0]))
    named = not all(each.isdecimal() for each in options.fields) or are_field_names(rows[0], code)
    if not named and not is_header_row(rows, options):
        choice = _choose_unnamed(name, rows, options, code)
        numbered: list[dict[str, object]] = [{str(number): cell for number, cell in enumerate(row, 1)} for row in rows]
        form = _columns_format(table, choice, options, numbered[0], header=False)
        return DetectedFormat(
            form, choice.labelled, _values(numbered, choice), notes=(*choice.notes, *name_notes(rows))
        )
    columns = [column.strip() for column in rows[0]]
    if twice := next((each for each in columns if each and columns.count(each) > 1), None):
        raise DataError(f"two columns of {name} are named {twice!r}; rename one")
    notes = () if named else header_notes(columns)
    records: list[dict[str, object]] = [dict(zip(columns, row, strict=True)) for row in rows[1:]]
    fields = {column: str(records[0][column]) if records else "" for column in columns}
    named_options = with_column_names(options, columns)
    choice = choose_fields(name, fields, named_options, code)
    form = _columns_format(table, choice, named_options, columns, header=True)
    return DetectedFormat(form, choice.labelled, _values(records, choice), notes=(*choice.notes, *notes))


def _columns_format(
    table: _Table, choice: FieldChoice, options: ReadingOptions, columns: Iterable[str], *, header: bool
) -> Format:
    return Format(
        kind=table.kind,
        text=choice.text,
        value=choice.value,
        keep=options.keep,
        header=header,
        separator=table.separator,
        escapes=table.escapes,
        columns=tuple(columns),
    )


def _choose_unnamed(name: str, rows: Sequence[Sequence[str]], options: ReadingOptions, code: int | None) -> FieldChoice:
    """The columns by their values. Where these are not clear, but one of the first record is named as fields are, the
    error is on names."""
    try:
        choice = choose_columns(name, rows, options, code)
    except OneValueError:
        raise
    except DataError:
        header = [column.strip() for column in rows[0]]
        if options.fields or not has_field_name(header):
            raise
        first = rows[1] if len(rows) > 1 else [""] * len(header)
        choose_fields(name, dict(zip(header, first, strict=True)), options, code)
        raise
    if choice.value is not None and not options.fields:
        refuse_unknown_header(name, rows, int(choice.value) - 1, options)
    return choice
