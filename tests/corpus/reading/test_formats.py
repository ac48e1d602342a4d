"""Records of each format become reviews, or are malformed for the reason that `formats.yaml` lists."""

import json
from collections.abc import Callable
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from common.json_values import from_json
from corpus.dataset_settings import Settings
from corpus.reading.formats import LABELS, MAX_LINE_BYTES, Format, LabelEncoder, MalformedLineError
from corpus.reading.parsing import Review, fields_parser, is_blank, line_parser, row_parser
from tests import oracle
from tests.corpus.reading.inputs.beginnings import tuples

TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load(Path(__file__).with_name("formats.yaml").read_text())
SNAP = Format(kind="json", text=("reviewText",), value="overall")
RATED = LabelEncoder(Settings())

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
RATINGS = st.sampled_from([1, 5, 3.0, 4.5, 0, 6, "2", "2.0", " 4 ", "4,0", "", "five", "0x1", "1_0", True, None, [5]])


def outcome(parse: Callable[[Any], Review], record: Any) -> Review | str:
    try:
        return parse(record)
    except MalformedLineError as error:
        return error.reason


def parsed(line: bytes, form: Format = SNAP, codes: LabelEncoder = RATED, code: int | None = None) -> Review | str:
    return outcome(line_parser(form, codes, code), line)


def parser(row: dict[str, Any]) -> Callable[[Any], Review]:
    """Return the parser for the format of a case. In the lines of the table, each character stands for one byte."""
    form, codes = Format(**tuples(row["format"])), LabelEncoder(Settings(**tuples(row.get("settings", {}))))
    if form.kind == "parquet":
        return row_parser(form, codes, row.get("code"))
    if form.kind == "csv":
        return fields_parser(form, codes)
    parse = line_parser(form, codes, row.get("code"))
    return lambda line: parse(line.encode("latin-1"))


@pytest.mark.parametrize("row", TABLE["records"], ids=itemgetter("case"))
def test_a_record_is_valid_or_malformed_for_one_reason(row: dict[str, Any]) -> None:
    form, parse, found = Format(**tuples(row["format"])), parser(row), []
    assert from_json(Format, json.loads(json.dumps(asdict(form)))) == form
    for record, _ in row["records"]:
        review = outcome(parse, record)
        shown = (
            review if isinstance(review, str) else [review.text, review.code, *([[*review.kept]] * bool(review.kept))]
        )
        found.append([record, shown])
    assert str(found) == str(row["records"])  # such as the number NaN


@pytest.mark.parametrize("value", ["9" * 400, "[" * 1_100 + "]" * 1_100], ids=["a long number", "deep nesting"])
def test_values_beyond_the_limits_of_parsers_are_malformed_in_any_field(value: str) -> None:
    assert parsed(b'{"reviewText": "a", "overall": 5, "x": %s}' % value.encode()) == "not_json"


def test_parquet_texts_have_the_maximum_length_of_lines() -> None:
    parse = row_parser(Format(kind="parquet", text=("text",), value="rating"), RATED)
    for letters, expected in ((MAX_LINE_BYTES // 2 + 1, "too_long"), (MAX_LINE_BYTES // 2, "bad_rating")):
        assert outcome(parse, ("\u00e9" * letters, 9)) == expected


@pytest.mark.parametrize("row", TABLE["labels"], ids=itemgetter("case"))
def test_labels_have_the_codes_of_the_settings(row: dict[str, Any]) -> None:
    codes = LabelEncoder(Settings(**tuples(row["settings"])))
    for value, expected in row["codes"]:
        found = outcome(lambda value: Review("", codes.encode(value)), value)
        assert (found if isinstance(found, str) else found.code) == expected, value
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            assert codes.known_codes.get(value, expected) == expected


@pytest.mark.parametrize("form", TABLE["refused"], ids=str)
def test_an_invalid_format_is_refused(form: dict[str, Any], messages) -> None:
    with messages.raises(DataError):
        Format(**tuples(form))


def test_a_format_without_rating_requires_files_with_a_class(messages) -> None:
    with messages.raises(DataError):
        line_parser(Format(kind="text"), RATED)(b"text")


@given(st.dictionaries(st.sampled_from(["reviewText", "overall", "other"]), JSON_VALUES | RATINGS), st.booleans())
def test_any_json_object_is_read_by_the_contract(fields: dict, ascii_only: bool) -> None:
    line = json.dumps(fields, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    ((_, expected),) = oracle.outcomes(oracle.File(line))
    assert parsed(line) == (expected if isinstance(expected, str) else Review(*expected))


CLASSES = ("true", "3", "sports", "3.5", "__label__odd")


LABEL_TEXTS = st.sampled_from(["sports", "__label__sports", "__label__odd", "__label____label__odd", "__label__", "3"])


@given(
    JSON_VALUES | LABEL_TEXTS | st.sampled_from([3, 3.0, 3.5, 4, -0.0, True]),
    st.sampled_from([{"classes": CLASSES}, {}, *({"positive_label": each} for each in ("1", "true", "a", "-3"))]),
)
def test_any_label_is_read_by_the_contract(value: object, how: dict[str, Any]) -> None:
    line = json.dumps({"text": "t", "label": value}).encode("utf-8", "surrogatepass")
    file, rules = oracle.File(line, text=("text",), value="label"), oracle.Rules(labelled=True, **how)
    ((_, expected),) = oracle.outcomes(file, rules)
    codes = LabelEncoder(Settings(ragged=True, labelled=True, **how))
    names = CLASSES if "classes" in how else LABELS
    found = parsed(line, Format(kind="json", text=("text",), value="label"), codes)
    assert found == (expected if isinstance(expected, str) else Review("t", names.index(expected[1])))
    if isinstance(value, str | int | float) and not isinstance(value, bool) and value in codes.known_codes:
        assert codes.known_codes[value] == codes.encode(value)


@pytest.mark.parametrize(("line", "blank"), [(b"", True), (b" \t\r", True), (b"\x0b", False), (b"0", False)])
def test_only_json_white_space_makes_a_line_blank(line: bytes, blank: bool) -> None:
    assert is_blank(line) is blank
