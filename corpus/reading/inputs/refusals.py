"""Refuses files that Shoal would read wrongly, and says how to convert them.

Each command in these messages must work as it is, with the names of the user's files in place of OLD and NEW.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from common.errors import DataError
from corpus.reading.csv_records import csv_rows
from corpus.reading.formats import DOUBLE_QUOTES, FASTTEXT_PREFIX, NO_JSON_NUMBER, WRITE_NULL
from corpus.reading.inputs.json_files import begins
from corpus.reading.inputs.layouts import candidates
from corpus.reading.parsing import is_blank, json_field

_MAX_HEADER_LINE = 8
_COPY = re.compile(rb'COPY ([\w.]+) \(([\w, "]+)\) FROM stdin;\s*')
_ESCAPED_QUOTE = re.compile(rb'(?:^|[,;\t|])"[^"]*\\"[^",;\t|\s]')
"""A backslash and a quote inside a quoted cell. By RFC 4180, a quote at this place would be doubled or end the cell."""
_MAX_ESCAPED = 0.05
_LABEL_IN_COLUMN = re.compile(rb"\s*" + FASTTEXT_PREFIX.encode() + rb"[^\s,;|]+ ?[,;|](?!\s*__label__)")


def refuse_lines_before_header(
    name: str, lines: Sequence[bytes], find_separator: Callable[[Sequence[bytes]], str | None]
) -> None:
    """Raise DataError if one of the first lines is a header, but not the first one.

    The lines above it are a title, a comment, `sep=,` for Excel, or `#TYPE` of PowerShell's Export-Csv. `lines`
    includes blank lines. `find_separator` returns the separator of some lines if the first of them is a header. Source:
    https://learn.microsoft.com/powershell/module/microsoft.powershell.utility/export-csv (2026-11-30).
    """
    numbers = [number for number, line in enumerate(lines[:_MAX_HEADER_LINE]) if not is_blank(line)]
    if not numbers or lines[numbers[0]].lstrip().startswith((b"{", b"[")):
        return
    first = lines[numbers[0]]
    for number in numbers:
        if separator := find_separator(lines[number : number + 2]):
            cells = [cell for row in csv_rows([first], separator) for cell in row if cell]
            fewer = 0 < len(cells) <= lines[number].count(separator.encode())
            if number > numbers[0] and (fewer or first.startswith(b"#")):
                raise DataError(
                    f"the header of {name} is line {number + 1}, below {begins([first])}; remove the lines above it: "
                    f"tail -n +{number + 1} OLD > NEW"
                )
            return


def refuse_dump(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError if one of the lines begins the rows of a table in a dump of PostgreSQL.

    Source: https://www.postgresql.org/docs/current/app-pgdump.html and sql-copy.html (2026-11-30).
    """
    tables = [(found[1].decode(), found[2].decode()) for line in lines if (found := _COPY.fullmatch(line))]
    if tables:
        columns = {table: [each.strip(' "') for each in listed.split(",")] for table, listed in tables}
        table = next((each for each, names in columns.items() if candidates(names).texts), tables[0][0])
        header = "\\t".join(columns[table])
        raise DataError(
            f"{name} is a dump of PostgreSQL; write the rows of a table, such as {table}, to a file: (printf "
            f"'{header}\\n'; sed -n '/^COPY {table} /,/^\\\\\\.$/p' OLD | sed '1d;$d') > NEW.tsv"
        )


def refuse_escaped_quotes(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError if quotes inside quoted cells of CSV are escaped by backslashes in many lines."""
    found = [line for line in lines if _ESCAPED_QUOTE.search(line)]
    if len(found) > _MAX_ESCAPED * len(lines):
        raise DataError(f"quotes of {name} are escaped by backslashes, as in {begins(found)}; {DOUBLE_QUOTES}")


def refuse_labels_in_columns(name: str, lines: Sequence[bytes]) -> None:
    """Raise DataError if most lines have a separator of columns after a label of fastText."""
    if 2 * sum(map(bool, map(_LABEL_IN_COLUMN.match, lines))) > len(lines):
        raise DataError(
            f"{name} has labels of fastText with a separator after them: {begins([lines[0]])}; give --format csv"
        )


def refuse_escaped_newlines(name: str, lines: Sequence[bytes], separator: bytes, width: int) -> None:
    """Raise DataError if a line ends with a backslash, and this line or the next line has too few columns."""
    for line, following in pairwise(lines):
        escaped = (len(line) - len(line.rstrip(b"\\"))) % 2
        if escaped and min(line.count(separator), following.count(separator)) < width - 1:
            # https://dev.mysql.com/doc/refman/8.4/en/load-data.html#load-data-field-line-handling
            raise DataError(
                f"in {name} a newline is escaped by a backslash, as MySQL writes it, in the line that begins "
                f"{begins([line])}; export the table as CSV with quoted values"
            )


def json_without_objects(name: str, lines: Sequence[bytes]) -> DataError | None:
    """Return the error for lines of JSON with NaN or Infinity, or with lists in place of objects, otherwise None."""
    if found := next(filter(NO_JSON_NUMBER.search, lines), None):
        return DataError(f"{name} has NaN or Infinity, which JSON does not allow: {begins([found])}; {WRITE_NULL}")
    if len(lines) > 1 and all(line.strip().startswith(b"[") and line.strip().endswith(b"]") for line in lines):
        return DataError(f"the lines of {name} are lists, not objects; write CSV: jq -r @csv OLD > NEW.csv")
    return None


def nested_objects(name: str, objects: Sequence[Mapping[str, object]]) -> DataError | None:
    """Return the error for objects with one list of objects in a field, or None for other objects."""
    lists = {
        field
        for each in objects
        for field, value in each.items()
        if isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value)
    }
    if len(lists) != 1:
        return None
    (field,) = lists
    return DataError(
        f"each line of {name} has a list of objects in the field {field}; write one object per line: jq -c "
        f"'.[\"{field}\"][]' OLD > NEW"
    )


def require_no_lists(
    name: str, objects: Sequence[Mapping[str, object]], text: Sequence[str], value: str | None
) -> None:
    """Raise DataError if most values of a text field, or of the value field, are lists."""
    for field in filter(None, (*text, value)):
        values = [json_field(each, field) for each in objects]
        if 2 * sum(isinstance(each, list) for each in values) > len(values):
            path = "".join(f'["{part}"]' for part in ([field] if field in objects[0] else field.split(".")))
            one = 'join(" ")' if field in text else ".[0]"
            raise DataError(
                f"the field {field} of {name} is a list, not one value; convert it: jq -c '.{path} |= {one}' OLD > NEW"
            )


def require_plain_columns(name: str, columns: Mapping[str, str], text: Sequence[str], value: str | None) -> None:
    """Raise DataError if a text column of Parquet has no strings, or the value column has lists or structs."""
    for each in text:
        if not columns[each].removeprefix("dictionary<values=").startswith(("string", "large_string")):
            raise DataError(
                f"the column {each} of {name} has the type {columns[each]}, not text; convert it to strings, or name "
                "another with --text-field"
            )
    if value is not None and columns[value].startswith(("struct", "list", "large_list", "map")):
        raise DataError(
            f"the column {value} of {name} has the type {columns[value]}, not one value; name another with "
            "--rating-field or --label-field"
        )


def nested_columns(name: str, columns: Mapping[str, str]) -> DataError | None:
    """Return the error for Parquet with a column of structs, or None for other files."""
    nested = next((each for each, kind in columns.items() if kind.startswith("struct")), None)
    if nested is None:
        return None
    return DataError(
        f"the column {nested} of {name} has fields of its own; make them columns: python3 -c 'import pyarrow.parquet "
        'as p; p.write_table(p.read_table("OLD").flatten(), "NEW")\''
    )
