"""Slow implementation of docs/reference/dataset.md for one line: its text and rating, or the reason why it is
malformed."""

import json
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field, replace

from tests.oracle_json import strict_json

MAX_LINE_BYTES = 4 * 1024 * 1024
BLANK = b" \t\r\n"
MISSING = ("", "nan", "null", "<na>", "\\n")
MARKS_OF_NOTHING = ("nan", "NaN", "NULL", "null", "\\N", "None", "NA", "<NA>")
JOINED = {
    "json": ("too_long", "not_json"),
    "csv": ("too_long", "not_csv", "too_many_columns"),
    "separated": ("too_long", "too_many_columns", "carriage_return"),
    "fasttext": ("too_long", "bad_label"),
    "text": ("too_long", "carriage_return"),
}
PAIRS = [("0", "1"), ("1", "2"), ("neg", "pos"), ("negative", "positive"), ("false", "true")]


@dataclass
class File:
    """Decompressed content of a file, and its format. The content of Parquet is a list of dicts, one for each row."""

    content: object
    kind: str = "json"
    text: tuple = ("reviewText",)
    value: str | None = "overall"
    header: bool = False
    separator: str = ","
    label: str | None = None
    """Class of the whole file, if no field has it."""
    test: bool = False
    broken: bool = False
    """Whether the content was recovered from a damaged archive."""


@dataclass
class Rules:
    """Settings of corpus.dataset_settings.Settings that affect reading and the use of a text."""

    rating_range: tuple = (1, 5)
    """Smallest and largest rating in steps, like the resulting ratings."""
    steps: int = 1
    fraction: bool = False
    labelled: bool = False
    positive_label: str | None = None
    classes: tuple = ()
    """Names of more than two classes, by label."""
    ragged: bool = False
    words: str = "letters"
    duplicates: bool = False
    other_labels: Counter = field(default_factory=Counter)
    """Counts of the labels that are neither the positive label nor a class nor of a pair, filled by `outcomes`."""


class Malformed(Exception):  # noqa: N818
    """Malformed line; the text is the reason."""


def written_rating(text: str):
    """Return the number and the maximum, if the text has one."""
    try:
        return json.loads(text), None
    except (ValueError, RecursionError):
        pass
    text, out_of = text.lower(), None
    for ending in ("stars", "star"):
        if text.endswith(ending):
            text = text[: -len(ending)].rstrip(" ")
            break
    for between in ("/", "out of"):
        value, found, most = text.partition(between)
        if found:
            most = most.strip(" ")
            most = most[:-2] if most.endswith((".0", ",0")) else most
            if not (most.isdecimal() and most.isascii() and len(most) < 10):
                raise Malformed("bad_rating")
            text, out_of = value.rstrip(" "), int(most)
    whole, comma, rest = text.partition(",")
    if comma and whole.removeprefix("-").isdecimal() and rest.isdecimal() and len(rest) < 3:
        text = f"{whole}.{rest}"
    try:
        if text != text.strip():
            raise ValueError("white space of another kind")
        return json.loads(text), out_of
    except (ValueError, RecursionError):
        raise Malformed("bad_rating") from None


def rating_of(value, rules: Rules) -> int:
    if isinstance(value, str):
        value, out_of = written_rating(value.strip(" \t\r\n"))
        if out_of is not None and (not rules.fraction or out_of * rules.steps != rules.rating_range[1]):
            raise Malformed("bad_rating")
    low, high = rules.rating_range
    if (
        type(value) not in (int, float)
        or abs(value) > 1000
        or round(value * rules.steps, 6) not in range(low, high + 1)
    ):
        raise Malformed("bad_rating")
    return round(value * rules.steps)


def label_of(value, rules: Rules) -> str:
    if type(value) is bool:
        label = "true" if value else "false"
    elif type(value) in (int, float):
        if value != value or abs(value) == float("inf"):
            raise Malformed("bad_label")
        # An integer beyond 64 bits is a double, as in most JSON parsers.
        value = value if -(2**63) <= value < 2**64 else float(value)
        label = str(int(value)) if value == int(value) else str(value)
    elif type(value) is str and value.strip():
        label = value.strip()
    else:
        raise Malformed("bad_label")
    if rules.positive_label is not None:
        names = [rules.positive_label]
    else:
        names = rules.classes or [name for pair in PAIRS for name in pair]
    for name in names:
        if label_key(label) == label_key(name):
            return "1" if rules.positive_label is not None else name
    rules.other_labels[label_key(label)] += 1
    if rules.positive_label is not None:
        return "0"
    raise Malformed("bad_label")


def label_key(label: str) -> str:
    """Return the same text for all spellings of a label."""
    label = unicodedata.normalize("NFKC", label).casefold().strip()
    label = label[len("__label__") :] if label.startswith("__label__") else label
    number, point, zeros = label.partition(".")
    if point and zeros and not zeros.strip("0"):
        label = number if number.lstrip("+-").isdecimal() and number.isascii() else label
    return label[1:] if label[:1] == "+" and label[1:].isdecimal() else label


def meaning(value, rules: Rules):
    """Return the rating, an integer, or the label, a string."""
    return label_of(value, rules) if rules.labelled else rating_of(value, rules)


def json_review(line: bytes, file: File, rules: Rules):
    decoded(line)
    try:
        record = strict_json(line)
    except ValueError:
        raise Malformed("not_json") from None
    if not isinstance(record, dict):
        raise Malformed("not_an_object")
    for name in file.text:
        if name not in record:
            raise Malformed("no_text")
        if not isinstance(record[name], str | None):
            raise Malformed("text_not_a_string")
    text = " ".join(record[name] or "" for name in file.text)
    if file.value is None:
        return text, file.label
    if file.value not in record:
        raise Malformed("no_label" if rules.labelled else "no_rating")
    return text, meaning(record[file.value], rules)


def decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("not_utf8") from None


def one_line(line: bytes) -> str:
    text = decoded(line).removesuffix("\r")
    if text.rstrip("\r").count("\r") > 1:
        raise Malformed("carriage_return")
    return text


def columns_review(fields: list[str], names: list[str] | None, file: File, rules: Rules):
    def place(name):
        return int(name) - 1 if names is None else names.index(name)

    if not any(fields):
        raise Malformed("blank")
    wanted = [*file.text, *([] if file.value is None else [file.value])]
    if any(place(name) >= len(fields) for name in wanted):
        raise Malformed("too_few_columns")
    if names is not None and len(fields) > len(names):
        raise Malformed("too_many_columns")
    if names is not None:
        cells = [each.strip() for each in fields]
        if cells == [each.strip() for each in names]:
            raise Malformed("header")
    texts = [fields[place(name)] for name in file.text]
    texts = ["" if each in MARKS_OF_NOTHING else each for each in texts]
    text = unescaped(" ".join(texts), "bfnrtv\\" if file.kind == "separated" else "n")
    if file.value is not None and fields[place(file.value)].strip(" \t\r\n").lower() in MISSING:
        raise Malformed("no_label" if rules.labelled else "no_rating")
    return text, file.label if file.value is None else meaning(fields[place(file.value)], rules)


def unescaped(text: str, letters: str) -> str:
    """Replace each escape, a backslash and one of `letters`, by a space, or by a backslash if it is two of them."""
    found = ""
    while text:
        if text[0] == "\\" and text[1:2] and text[1] in letters:
            found, text = found + ("\\" if text[1] == "\\" else " "), text[2:]
        else:
            found, text = found + text[0], text[1:]
    return found


def fasttext_review(line: bytes, rules: Rules):
    decoded(line)
    tokens = line.split()
    labels = [token for token in tokens if token.startswith(b"__label__")]
    if len(labels) != 1:
        raise Malformed("bad_label" if labels else "no_label")
    text = b" ".join(token for token in tokens if token != labels[0])
    if tokens[0] == labels[0]:
        text = b"".join(line.split(None, 1)[1:])
    return text.decode(), label_of(labels[0].decode(), rules)


def row_review(row: dict, file: File, rules: Rules):
    values = [row.get(name) for name in file.text]
    value = None if file.value is None else row.get(file.value)
    if sum(len(each if type(each) is bytes else str(each or "").encode()) for each in values) > MAX_LINE_BYTES:
        raise Malformed("too_long")
    if any(type(each) is bytes for each in [*values, value]):
        raise Malformed("not_utf8")
    for each in values:
        if type(each) not in (str, type(None)):
            raise Malformed("text_not_a_string")
    values = [each or "" for each in values]
    if file.value is None:
        return " ".join(values), file.label
    if value is None:
        raise Malformed("no_label" if rules.labelled else "no_rating")
    return " ".join(values), meaning(value, rules)


def csv_fields(lines: list[bytes], separator: str) -> tuple[list[bytes] | str, int]:
    """Return the fields of the record that begins with the first of `lines`, or a reason, and its number of lines."""
    fields = [b""]
    state = "field begins"
    size = 0
    for taken, line in enumerate(lines, 1):
        size += len(line) + 1
        if size > MAX_LINE_BYTES + 1:
            return "too_long", taken
        for place in range(len(line) + 1):
            letter = line[place : place + 1] or b"\n"
            if state == "over":
                if letter not in b"\r\n":
                    return "not_csv", taken
            elif state == "quoted":
                if letter == b'"':
                    state = "quote in quoted"
                else:
                    fields[-1] += letter
            elif letter == b'"' and state == "field begins":
                state = "quoted"
            elif letter == b'"' and state == "quote in quoted":
                fields[-1] += letter
                state = "quoted"
            elif letter == separator.encode():
                fields.append(b"")
                state = "field begins"
            elif letter in b"\r\n":
                state = "over"
            elif state == "quote in quoted":
                return "not_csv", taken
            else:
                fields[-1] += letter
                state = "in field"
        if state != "quoted":
            return fields, taken
    return "unended", len(lines)


def csv_outcomes(lines: list[bytes], file: File, rules: Rules, names: list[str] | None = None, first: int = 0):
    """Yield the outcomes of the lines from index `first` on. Of an invalid record only the first line is consumed."""
    at = first
    while at < len(lines):
        first = at
        fields, taken = csv_fields(lines[at:], file.separator)
        at = first + 1 if isinstance(fields, str) else first + taken
        if first == 0 and file.header:
            names = [name.decode() for name in fields]
            continue
        if fields != "too_long" and not lines[first].strip(BLANK):
            continue
        if fields == "unended" and file.broken:
            return  # the record that the damage cut
        try:
            if isinstance(fields, str):
                raise Malformed("not_csv" if fields == "unended" else fields)
            if file.value is not None and taken > 5:
                tried = replace(rules, other_labels=Counter())
                inner = csv_outcomes([b"", *lines[first + 1 : at]], file, tried, names, 1)
                if sum(not isinstance(each, str) for _, each in inner) >= 0.9 * (taken - 1):
                    at = first + 1
                    raise Malformed("not_csv")
            for line in lines[first:at]:
                decoded(line)
            yield first + 1, columns_review([decoded(field) for field in fields], names, file, rules)
        except Malformed as reason:
            yield first + 1, str(reason)


def outcomes(file: File, rules: Rules = Rules()):  # noqa: B008
    """Yield the number of each line, from 1, with its text and its rating or label, or the reason of its rejection."""
    for number, found in _outcomes(file, rules):
        if found != "blank":
            yield number, found
        if found in JOINED.get(file.kind, ()):
            for _ in range(file.content.split(b"\n")[number - 1].count(b"\r") - 1):
                yield number, "carriage_return"


def _outcomes(file: File, rules: Rules):
    if file.kind == "parquet":
        for number, row in enumerate(file.content, 1):
            try:
                yield number, row_review(row, file, rules)
            except Malformed as reason:
                yield number, str(reason)
        return
    lines = [re.sub(b"^(\xef\xbb\xbf)+", b"", line) for line in file.content.split(b"\n")]
    while lines[-1].endswith(b"\x1a"):
        lines[-1] = lines[-1][:-1]
    if file.broken or not lines[-1]:
        lines.pop()
    if file.kind == "csv":
        yield from csv_outcomes(lines, file, rules)
        return
    names = None
    for number, line in enumerate(lines, 1):
        try:
            if number == 1 and file.header:
                names = decoded(line).removesuffix("\r").split(file.separator)
                continue
            if len(line) > MAX_LINE_BYTES:
                raise Malformed("too_long")
            if not line.strip(BLANK):
                continue
            if file.kind == "json":
                found = json_review(line, file, rules)
            elif file.kind == "separated":
                text = one_line(line) if names and len(names) == 1 else decoded(line).removesuffix("\r")
                found = columns_review(text.split(file.separator), names, file, rules)
            elif file.kind == "fasttext":
                found = fasttext_review(line, rules)
            else:
                found = one_line(line), file.label
            yield number, found
        except Malformed as reason:
            yield number, str(reason)


def review(line: bytes):
    """(text, rating) of a line of SNAP's files, or the reason why it is malformed."""
    try:
        return json_review(line, File(line), Rules())
    except Malformed as reason:
        return str(reason)
