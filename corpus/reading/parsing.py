"""Parses records of input files: a text, and the code of a rating or label (docs/reference/dataset.md, "Reading").

Reject a record with broken UTF-8, NaN or an overflowing number even in a field that is not read. Parsers differ in
whether they accept such a record, so the dataset would otherwise depend on the parser.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from common.errors import DataError
from corpus.reading.formats import (
    BLANK,
    CARRIAGE_RETURN,
    FASTTEXT_PREFIX,
    MAX_LINE_BYTES,
    MISSING,
    MISSING_TEXTS,
    Format,
    LabelEncoder,
    MalformedLineError,
)

_ABSENT = object()
# https://www.postgresql.org/docs/current/sql-copy.html (2026-11-30), "Text Format"
_ESCAPES = re.compile(r"\\([bfnrtv\\])")
# A longer text is not hashed, which takes time.
_MOST_MISSING = max(map(len, MISSING_TEXTS))
_JSON_WHITESPACE = b" \t\r\n"


class Review(NamedTuple):
    """Review: its unchanged text, the code of its rating or label, and the values of the format's `keep` fields."""

    text: str
    code: int
    kept: tuple[object, ...] = ()


def is_blank(line: bytes) -> bool:
    """Return whether a line has only characters that are white space in JSON. Blank lines are not counted as lines."""
    return not line.strip(_JSON_WHITESPACE)


def line_parser(form: Format, encoder: LabelEncoder, code: int | None = None) -> Callable[[bytes], Review]:
    """Return a parser for the lines of a format with one record per line, or for the elements of a JSON array.

    The argument of the parser is a line without its newline and without the byte-order mark of the file. The parser
    raises MalformedLineError. If the format has no value field, `code` is the code of all records.
    """
    if form.kind in ("json", "array"):
        return _json_parser(form, encoder, code)
    if form.kind == "separated":
        parse = fields_parser(form, encoder, code)
        decode = one_line if len(form.columns) == 1 else _decoded
        return lambda line: parse(decode(line).split(form.separator))
    if form.kind == "fasttext":
        return lambda line: _fasttext(line, encoder)
    return lambda line: Review(one_line(line), _required_code(code))


def fields_parser(form: Format, encoder: LabelEncoder, code: int | None = None) -> Callable[[Sequence[str]], Review]:
    """Return a parser for the fields of a record of the kind `csv` or `separated`; see `line_parser`.

    Escapes of white space in a text become spaces: `\\n` in the polarity datasets, and all of those that PostgreSQL and
    MySQL write in a table without quotes.
    """
    texts = [form.position(name) for name in form.text]
    place = None if form.value is None else form.position(form.value)
    keep = [form.position(name) for name in form.keep]
    least = 1 + max(form.position(name) for name in form.fields)
    most = len(form.columns) or None
    text_name = form.columns[texts[0]] if form.header and form.columns else None
    encode, known = encoder.encode, encoder.known_codes

    def parse(fields: Sequence[str]) -> Review:
        if not any(fields):
            raise MalformedLineError(BLANK)
        if len(fields) < least:
            raise MalformedLineError("too_few_columns")
        if most is not None and len(fields) > most:
            raise MalformedLineError("too_many_columns")
        if fields[texts[0]].strip() == text_name and [each.strip() for each in fields] == [*form.columns]:
            raise MalformedLineError("header")
        cells = [fields[column] for column in texts]
        text = " ".join(["" if len(cell) <= _MOST_MISSING and cell in MISSING_TEXTS else cell for cell in cells])
        if "\\" in text:
            text = _ESCAPES.sub(_unescaped, text) if form.kind == "separated" else text.replace("\\n", " ")
        kept = tuple([fields[column] for column in keep])
        if place is None:
            return Review(text, _required_code(code), kept)
        found = known.get(fields[place])
        if found is None and fields[place].strip(" \t\r\n").lower() in MISSING:
            return Review(text, encoder.encode_missing(), kept)
        return Review(text, encode(fields[place]) if found is None else found, kept)

    return parse


def _unescaped(escape: re.Match[str]) -> str:
    return "\\" if escape[1] == "\\" else " "


def row_parser(form: Format, encoder: LabelEncoder, code: int | None = None) -> Callable[[Sequence[object]], Review]:
    """Return a parser for a row of Parquet, given as the values of `form.fields`; see `line_parser`.

    The parser expects None for null, and bytes for a string that is not UTF-8.
    """
    texts = len(form.text)
    needed = len(form.fields) - len(form.keep)

    def parse(values: Sequence[object]) -> Review:
        if sum(map(_size, values[:texts])) > MAX_LINE_BYTES:
            raise MalformedLineError("too_long")
        if bytes in map(type, values[:needed]):
            raise MalformedLineError("not_utf8")
        text = " ".join([_cell(value) for value in values[:texts]])
        kept = tuple(values[needed:])
        if form.value is None:
            return Review(text, _required_code(code), kept)
        if values[texts] is None:
            return Review(text, encoder.encode_missing(), kept)
        return Review(text, encoder.encode(values[texts]), kept)

    return parse


def json_field(value: Mapping[str, object], name: str, absent: object = None) -> object:
    """Return a field of a JSON object, or `absent` if there is no such field.

    A name with dots (`review.body`) can be the name of a field or a path into nested objects.
    """
    if name in value:
        return value[name]
    first, _, rest = name.partition(".")
    inner = value.get(first)
    return json_field(inner, rest, absent) if rest and isinstance(inner, dict) else absent


def _json_parser(form: Format, encoder: LabelEncoder, code: int | None) -> Callable[[bytes], Review]:
    from orjson import JSONDecodeError, loads  # not at the top: slow to load, and only needed for JSON

    def parse(line: bytes) -> Review:
        try:
            value = loads(line)
        except JSONDecodeError:
            _decoded(line)
            raise MalformedLineError("not_json") from None
        if not isinstance(value, dict):
            raise MalformedLineError("not_an_object")
        parts = []
        for name in form.text:
            part = json_field(value, name, _ABSENT)
            if part is _ABSENT:
                raise MalformedLineError("no_text")
            parts.append(_cell(part))
        kept = tuple([json_field(value, name) for name in form.keep])
        if form.value is None:
            return Review(" ".join(parts), _required_code(code), kept)
        rating = json_field(value, form.value)
        if rating is None and form.value not in value:
            return Review(" ".join(parts), encoder.encode_missing(), kept)
        return Review(" ".join(parts), encoder.encode(rating), kept)

    return parse


def split_label(line: bytes) -> tuple[bytes, bytes]:
    """Return the label of a fastText line, and the rest of the line. The label can be anywhere in the line.

    Raises MalformedLineError if the line has no label or more than one.
    """
    # Split bytes and not str, because str.split() would also split at a no-break space, which is a part of the text.
    label, text = (*line.split(None, 1), b"", b"")[:2]
    prefix = FASTTEXT_PREFIX.encode()
    if prefix in text:
        words = line.split()
        labels = [word for word in words if word.startswith(prefix)]
        if len(labels) > 1:
            raise MalformedLineError("bad_label")
        if labels and not label.startswith(prefix):
            (label,) = labels
            before, _, after = b" ".join([b"", *words, b""]).partition(b" " + label + b" ")
            text = b" ".join(filter(None, (before.strip(), after.strip())))
    if not label.startswith(prefix):
        raise MalformedLineError("no_label")
    return label, text


def _fasttext(line: bytes, encoder: LabelEncoder) -> Review:
    _decoded(line)
    label, text = split_label(line)
    return Review(text.decode(), encoder.encode(label.decode()))


def _size(value: object) -> int:
    """Return the size of a string in bytes (UTF-8), or 0 for any other value."""
    return len(value.encode()) if isinstance(value, str) else len(value) if isinstance(value, bytes) else 0


def _cell(value: object) -> str:
    """Return the value of a text field, or "" for null. Raises MalformedLineError for a value that is not a string."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise MalformedLineError("text_not_a_string")


def one_line(line: bytes) -> str:
    """Decode a line. Raises MalformedLineError also for several carriage returns before its end."""
    text = _decoded(line)
    if text.rstrip("\r").count("\r") > 1:
        raise MalformedLineError(CARRIAGE_RETURN)
    return text


def _decoded(line: bytes) -> str:
    try:
        return line.decode().removesuffix("\r")
    except UnicodeDecodeError:
        raise MalformedLineError("not_utf8") from None


def _required_code(code: int | None) -> int:
    if code is None:
        raise DataError(
            "the format has no rating or label field; name a field, or give the files of each class separately"
        )
    return code
