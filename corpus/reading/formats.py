"""Defines the format of an input file: its text fields, its rating or label field, and the integer codes of its values.

In Python, True and 1.0 equal 1. In an input file, true is not a rating. `label_key` says which labels are the same.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import normalize

from common.errors import DataError, require_rules
from corpus.dataset_settings import Settings

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_LINE_BYTES = 4 << 20

LABELS = ("0", "1", "2", "neg", "pos", "negative", "positive", "false", "true")
LABEL_PAIRS = ((0, 1), (1, 2), (3, 4), (5, 6), (7, 8))
"""Known pairs of labels, as indices into LABELS: the negative label, then the positive label."""

KINDS = ("json", "array", "csv", "separated", "parquet", "fasttext", "text")

CARRIAGE_RETURN = "carriage_return"
"""Reason for the further lines that a malformed line contains, if carriage returns end them."""

MALFORMED_REASONS = (
    "too_long",
    "not_csv",
    "not_utf8",
    "not_json",
    "not_an_object",
    "too_few_columns",
    "too_many_columns",
    "header",
    "no_text",
    "text_not_a_string",
    "no_rating",
    "bad_rating",
    "no_label",
    "bad_label",
    CARRIAGE_RETURN,
)
"""Reasons why a record is malformed, in the order of the checks.

A record is counted under the first reason that applies.
"""

BLANK = "blank"
"""Reason for skipping a record in which all values are empty. Like a blank line, such a record is not counted."""

MISSING = ("", "nan", "null", "<na>", "\\n")
r"""Values, in lower case, that mean a missing rating or label in tables. Databases write `NULL` and `\N`."""
MISSING_TEXTS = frozenset(("nan", "NaN", "NULL", "null", r"\N", "None", "NA", "<NA>"))
r"""Cells of tables that mean a missing text, as programs write them.

pandas reads them as missing (https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html, 2026-11-30), and
PostgreSQL writes `\N` (https://www.postgresql.org/docs/current/sql-copy.html, 2026-11-30). Words that people type, such
as `none` and `n/a`, are texts. `None` and `NA` can also be names of classes, so they are labels.
"""

FASTTEXT_PREFIX = "__label__"

_DECIMAL_COMMA = re.compile(r"(-?[0-9]+),([0-9]{1,2})", re.ASCII)
_OUT_OF = re.compile(r"(\S+?) *(?:/|out of) *([0-9]{1,9})(?:[.,]0)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"\+?(-?[0-9]+)(?:\.0+)?", re.ASCII)
JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)

NO_JSON_NUMBER = re.compile(rb"[:,\[]\s*(NaN|-?Infinity)\s*([,}\]]|$)")
# No string of JSON contains a newline, so this works for JSON lines and for an array of several lines.
WRITE_NULL = (
    r"""write null instead: python3 -c 'import re, sys; [print(re.sub(r"(\"(?:[^\"\\]|\\.)*\")|NaN|-?Infinity", """
    """lambda m: m[1] or "null", line), end="") for line in sys.stdin]' < OLD > NEW"""
)


class MalformedLineError(ValueError):
    """A record is not a review. `reason` is one of MALFORMED_REASONS, or BLANK."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Format:
    """Format of a file, by which its records are read.

    Files of the kinds `json`, `separated`, `fasttext` and `text` have one record per line. An `array` file has one JSON
    array of objects. In a `separated` file, quotes are ordinary characters. In a `csv` file, a quoted field can contain
    separators and newlines (RFC 4180). A `parquet` file has columns of strings. Raises DataError for values that
    contradict each other.
    """

    kind: str
    """One of KINDS."""
    text: tuple[str, ...] = ()
    """Text fields.

    The text of a review is their strings, joined by a space. Columns without names are numbered from "1".
    """
    value: str | None = None
    """Field of the rating or label.

    None if all records have the same class, or if the records are of the kind `fasttext`.
    """
    keep: tuple[str, ...] = ()
    """Additional fields that are returned with each review, unchanged."""
    header: bool = False
    """Whether the first line names the columns, for the kinds `csv` and `separated`."""
    separator: str = ","
    """Separator of columns: one character for the kind `csv`, any string for the kind `separated`."""
    columns: tuple[str, ...] = ()
    """Column names of the header, or column numbers if there is no header.

    Empty if records can have any number of columns. The names are stored here because the reader of a range in the
    middle of the file does not read the header.
    """

    def __post_init__(self) -> None:
        rules = (
            (self.kind in KINDS, f"{self.kind} is not a format; choose one of {', '.join(KINDS)}"),
            (self.text or self.kind in ("fasttext", "text"), f"the format {self.kind} needs a text field"),
            (
                self.kind != "csv" or len(self.separator) == 1,
                "quoted values need a separator of one character; give another --separator, or --quoting none",
            ),
            (
                self.kind != "separated" or (self.separator and "\n" not in self.separator),
                "a separator needs at least one character and no newline",
            ),
        )
        require_rules(*rules)
        if self.kind in ("csv", "separated"):
            for name in self.fields:
                self.position(name)

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields to read: the text fields, the value field, and the `keep` fields, in this order."""
        return (*self.text, *(() if self.value is None else (self.value,)), *self.keep)

    @property
    def is_splittable(self) -> bool:
        """Whether a range of lines can be read without the lines before the range."""
        return self.kind not in ("array", "csv", "parquet")

    def position(self, name: str) -> int:
        """Return the index of a column, from 0. Raises DataError if the format has no such column."""
        if not self.header:
            if name.isascii() and name.isdigit() and int(name):
                return int(name) - 1
            raise DataError(f"{name!r} is not a column; without a header, columns are numbered from 1")
        if name in self.columns:
            return self.columns.index(name)
        raise DataError(f"there is no column {name!r}; the header names {', '.join(self.columns)}")


OTHER = -1
"""Code for a missing or invalid rating or label, if texts with such values are read."""


class LabelEncoder:
    """Encoder that maps ratings or labels to integer codes of at least 0.

    The code of a rating is its number of steps. The code of a label is its index in LABELS. If the settings have a
    positive label, this label has the code 1, and all other labels have the code 0. If the settings have more than two
    classes, the code is the index of the class. If `others` is true, a missing or invalid value has the code OTHER.
    """

    other_labels: Counter[str]
    """Counts of the labels, as `label_key` returns them, that are neither the positive label nor a class nor in LABELS.

    The reader of a range moves these counts to its tally.
    """

    known_codes: dict[object, int]
    """Codes of the usual values, with the types that the JSON parser returns, for fast lookup.

    Never look up a bool, because True equals 1.
    """

    def __init__(self, settings: Settings, *, others: bool = False) -> None:
        self._missing_reason = "no_label" if settings.labelled else "no_rating"
        self._settings, self._others = settings, others
        self.other_labels = Counter()
        if not settings.labelled:
            low, high = settings.rating_range
            self._encode: Callable[[object], int] = self._encode_rating
            self._range = (low, high)
            self._steps = settings.rating_steps
            self._out_of = (high / self._steps,) if settings.rating_fraction else ()
            # In Python, 3 and 3.0 are the same key of a dictionary.
            self.known_codes = {n / self._steps: n for n in range(low, high + 1)}
            self.known_codes.update({form: n for n in range(low, high + 1) for form in _spellings(n / self._steps)})
        else:
            self._encode = self._encode_label
            positive = settings.positive_label
            codes = {name: code for code, name in enumerate(settings.classes or LABELS)}
            codes = codes if positive is None else {positive: 1}
            self._codes = {label_key(name): code for name, code in codes.items()}
            self._code_of_others = None if positive is None else 0
            usual = [
                each for name in codes for each in (name, FASTTEXT_PREFIX + name) if label_key(each) in self._codes
            ]
            self.known_codes = {each: self._codes[label_key(each)] for each in usual}
            self.known_codes |= {n: self._codes[str(n)] for n in range(len(codes) + 1) if str(n) in self._codes}
        self.encode: Callable[[object], int] = self._encode_or_other if others else self._encode

    def twin(self) -> "LabelEncoder":
        """Return an encoder with the same codes, for values that are only tried. It has its own `other_labels`."""
        return LabelEncoder(self._settings, others=self._others)

    def encode_missing(self) -> int:
        """Return the code of a missing value, OTHER. Raises MalformedLineError unless `others` is true."""
        if not self._others:
            raise MalformedLineError(self._missing_reason)
        return OTHER

    def _encode_or_other(self, value: object) -> int:
        try:
            return self._encode(value)
        except MalformedLineError:
            return OTHER

    def _encode_rating(self, value: object) -> int:
        """Return the code of a rating, given as a number or as a string that contains a number."""
        if isinstance(value, str):
            value, out_of = rating_text(value)
            if out_of is not None and out_of not in self._out_of:
                raise MalformedLineError("bad_rating")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise MalformedLineError("bad_rating")
        low, high = self._range
        steps = round(value * self._steps, 6)  # without rounding, 0.7 * 10 is 7.000000000000001
        if not low <= steps <= high or steps % 1:
            raise MalformedLineError("bad_rating")
        return int(steps)

    def _encode_label(self, value: object) -> int:
        label = label_key(label_text(value))
        code = self._codes.get(label)
        if code is None:
            self.other_labels[label] += 1
            code = self._code_of_others
        if code is None:
            raise MalformedLineError("bad_label")
        return code


def rating_text(text: str) -> tuple[float | None, float | None]:
    """Return the rating in a string, and the largest rating if the string names it, otherwise None.

    Strings such as `4/5` and `4,0 out of 5 stars` name the largest rating. Returns (None, None) for a string without a
    rating.
    """
    text = text.strip(" \t\r\n")
    if JSON_NUMBER.fullmatch(text):
        return float(text), None
    text = text.lower().removesuffix("s").removesuffix("star").rstrip(" ")
    out_of = None
    if found := _OUT_OF.fullmatch(text):
        text, out_of = found[1], float(found[2])
    number = _DECIMAL_COMMA.sub(r"\1.\2", text) if _DECIMAL_COMMA.fullmatch(text) else text
    return (float(number), out_of) if JSON_NUMBER.fullmatch(number) else (None, None)


@lru_cache(1 << 12)
def label_key(label: str) -> str:
    """Return the form in which labels are compared. Two labels are the same if their forms are equal.

    Case, white space at the ends and fastText's `__label__` do not matter. Neither does the form of a letter in
    Unicode: NFKC also makes a no-break space a space. A whole number may have a `+` or end in `.0`.
    """
    key = class_name(normalize("NFKC", label).casefold())
    return number[1] if (number := _WHOLE_NUMBER.fullmatch(key)) else key


def class_name(label: str) -> str:
    """Return the class name of a label: the label without surrounding white space and fastText's `__label__`."""
    return label.strip().removeprefix(FASTTEXT_PREFIX)


def _spellings(rating: float) -> tuple[str, ...]:
    """Return the usual strings for a rating, such as `4` and `4.0`."""
    return (str(int(rating)), f"{int(rating)}.0") if rating.is_integer() else (str(rating),)


def label_text(value: object) -> str:
    """Return a label as a string: `true` for True, `3` for 3.0, and strings without surrounding white space.

    Raises MalformedLineError for a value that is not a boolean, a number or a nonempty string.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) or (isinstance(value, float) and value - value == 0):
        return str(value)
    if isinstance(value, str) and (label := value.strip()):
        return label
    raise MalformedLineError("bad_label")
