import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import (
    LABEL_PAIRS,
    LABELS,
    MALFORMED_REASONS,
    MAX_LINE_BYTES,
    Codes,
    Format,
    MalformedLineError,
)
from corpus.reading.parsing import Review, fields_parser, is_blank, line_parser, row_parser
from tests import oracle

SNAP = Format(kind="json", text=("reviewText",), value="overall")
RATED = Codes(Settings())
LABELLED = Codes(Settings(labelled=True))

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


def parsed(line: bytes, form: Format = SNAP, codes: Codes = RATED, code: int | None = None) -> Review | str:
    return outcome(line_parser(form, codes, code), line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"reviewText": "fine", "overall": 5.0}', Review("fine", 5)),
        (b' {"reviewText": "fine", "overall": 5}\r', Review("fine", 5)),
        (b'{"overall": "4", "reviewText": ""}', Review("", 4)),
        (b'{"overall": 1, "reviewText": "a", "overall": 2}', Review("a", 2)),
        (b'{"reviewText": "\\u00e9\\ud83d\\ude00", "overall": 1e0}', Review("\u00e9\U0001f600", 1)),
        (b'{"reviewText": "a\\u0000", "overall": 5}', Review("a\0", 5)),
        (b"", "not_json"),
        (b"no", "not_json"),
        (b"[1, 2]", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b'{"overall": 5}', "no_text"),
        (b'{"reviewText": null, "overall": 5}', "text_not_a_string"),
        (b'{"reviewText": null, "overall": 9}', "text_not_a_string"),
        (b'{"reviewText": "a"}', "no_rating"),
        (b'{"reviewText": "a", "overall": 4.5}', "bad_rating"),
        (b'{"reviewText": "a", "overall": 0}', "bad_rating"),
        (b'{"reviewText": "a", "overall": 6}', "bad_rating"),
        (b'{"reviewText": "a", "overall": true}', "bad_rating"),
        (b'{"reviewText": "a", "overall": null}', "bad_rating"),
        (b'{"reviewText": "a", "overall": "good"}', "bad_rating"),
        (b'{"reviewText": "a", "overall": "1e999"}', "bad_rating"),
        (b'{"reviewText": "a", "overall": 5, "x": NaN}', "not_json"),
        (b'{"reviewText": "a", "overall": 5, "x": Infinity}', "not_json"),
        (b'{"reviewText": "a", "overall": 5, "x": 1e999}', "not_json"),
        (b'{"reviewText": "a", "overall": 5, "x": ' + b"9" * 400 + b"}", "not_json"),
        (b'{"reviewText": "a", "overall": 5, "x": "\xff"}', "not_json"),
        (b'{"reviewText": "a", "overall": 5, "x": "\\ud800"}', "not_json"),
        (b'{"reviewText": "a", "overall": 5, "x": "\xed\xa0\x80"}', "not_json"),
        (b'{"reviewText": "a\x00", "overall": 5}', "not_json"),
        (b'{"reviewText": "a", "overall": 05}', "not_json"),
        (b'{"reviewText": "a", "overall": 5}\x00', "not_json"),
        (b'\xef\xbb\xbf{"reviewText": "a", "overall": 5}', "not_json"),
        (b'{"reviewText": "a", "overall": 5, "x": ' + b"[" * 1100 + b"]" * 1100 + b"}", "not_json"),
    ],
)
def test_a_line_is_sound_as_a_whole_or_malformed(line: bytes, expected: Review | str) -> None:
    assert parsed(line) == expected


def as_oracle(found: Review | str) -> tuple[str, int] | str:
    return found if isinstance(found, str) else (found.text, found.code)


@given(st.dictionaries(st.sampled_from(["reviewText", "overall", "other"]), JSON_VALUES | RATINGS), st.booleans())
def test_any_object_is_read_as_the_contract_says(fields: dict, ascii_only: bool) -> None:
    line = json.dumps(fields, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert as_oracle(parsed(line)) == oracle.review(line)


def test_every_reason_is_listed_once() -> None:
    assert len(set(MALFORMED_REASONS)) == len(MALFORMED_REASONS)


def test_several_fields_make_one_text_and_the_first_fault_among_them_counts() -> None:
    form = Format(kind="json", text=("title", "text"), value="rating")
    assert parsed(b'{"title": "a", "text": "b", "rating": 2}', form) == Review("a b", 2)
    assert parsed(b'{"text": 3, "rating": 9}', form) == "no_text"
    assert parsed(b'{"title": 3, "rating": 9}', form) == "text_not_a_string"


def test_another_range_admits_other_ratings() -> None:
    codes = Codes(Settings(rating_range=(0, 10)))
    assert parsed(b'{"reviewText": "a", "overall": 10}', codes=codes) == Review("a", 10)
    assert parsed(b'{"reviewText": "a", "overall": "0"}', codes=codes) == Review("a", 0)


@pytest.mark.parametrize("pair", LABEL_PAIRS)
def test_in_every_pair_of_labels_the_positive_one_has_the_larger_code(pair: tuple[int, int]) -> None:
    negative, positive = (LABELS[code] for code in pair)
    assert negative < positive
    assert (LABELLED.code_of(negative), LABELLED.code_of(positive)) == pair


@pytest.mark.parametrize(
    ("value", "code"),
    [(0, 0), (1, 1), (2, 2), (1.0, 1), (-0.0, 0), (" 1\r", 1), ("neg", 3), ("__label__0", 5), ("__label__2", 7)],
)
def test_labels_of_known_pairs_have_codes(value: object, code: int) -> None:
    assert LABELLED.code_of(value) == code
    assert LABELLED.known_codes.get(value, code) == code


@pytest.mark.parametrize("value", [True, False, None, 3, -1, 0.5, "1.0", "Pos", "", " ", [1], {}, float("nan")])
def test_other_labels_are_malformed_where_nobody_says_what_they_mean(value: object) -> None:
    assert outcome(lambda value: Review("", LABELLED.code_of(value)), value) == "bad_label"


@pytest.mark.parametrize(
    ("positive", "value", "code"),
    [
        *(("spam", "spam", 1), ("spam", " spam ", 1), ("spam", "ham", 0), ("spam", 7, 0), ("7", 7.0, 1), ("7", "7", 1)),
        *(("7", "7.0", 0), ("7.5", 7.5, 1), ("1", True, 0), ("true", True, 1), ("false", True, 0)),
    ],
)
def test_a_positive_label_makes_all_others_negative(positive: str, value: object, code: int) -> None:
    assert Codes(Settings(labelled=True, positive_label=positive)).code_of(value) == code


CLASSES = ("true", "3", "sports", "3.5", "__label__odd")


@pytest.mark.parametrize(
    ("value", "code"),
    [(True, 0), ("true", 0), (3, 1), (3.0, 1), (" 3\r", 1), ("__label__3", 1), ("sports", 2), ("__label__sports", 2)],
)
def test_the_code_of_a_label_is_the_place_of_its_class(value: object, code: int) -> None:
    codes = Codes(Settings(ragged=True, labelled=True, classes=CLASSES))
    assert codes.code_of(value) == code
    if not isinstance(value, bool):
        assert codes.known_codes.get(value, code) == code


LABEL_TEXTS = st.sampled_from(["sports", "__label__sports", "__label__odd", "__label____label__odd", "__label__", "3"])


@given(
    JSON_VALUES | LABEL_TEXTS | st.sampled_from([3, 3.0, 3.5, 4, -0.0, True]),
    st.sampled_from([{"classes": CLASSES}, {}, *({"positive_label": each} for each in ("1", "true", "a", "-3"))]),
)
def test_any_label_is_read_as_the_contract_says(value: object, how: dict[str, Any]) -> None:
    line = json.dumps({"text": "t", "label": value}).encode("utf-8", "surrogatepass")
    file, rules = oracle.File(line, text=("text",), value="label"), oracle.Rules(labelled=True, **how)
    ((_, expected),) = oracle.outcomes(file, rules)
    codes = Codes(Settings(ragged=True, labelled=True, **how))
    names = CLASSES if "classes" in how else LABELS
    found = parsed(line, Format(kind="json", text=("text",), value="label"), codes)
    assert found == (expected if isinstance(expected, str) else Review("t", names.index(expected[1])))
    if isinstance(value, str | int | float) and not isinstance(value, bool) and value in codes.known_codes:
        assert codes.known_codes[value] == codes.code_of(value)


def test_a_record_without_its_value_says_which_is_missing() -> None:
    assert parsed(b'{"reviewText": "a"}') == "no_rating"
    assert parsed(b'{"reviewText": "a"}', codes=LABELLED) == "no_label"


def test_a_files_own_class_is_that_of_all_its_records() -> None:
    assert parsed(b'{"text": "a"}', Format(kind="json", text=("text",)), LABELLED, 1) == Review("a", 1)
    assert parsed(b"any text, as it is\r", Format(kind="text"), LABELLED, 0) == Review("any text, as it is", 0)
    assert parsed(b"\xff", Format(kind="text"), LABELLED, 0) == "not_utf8"
    with pytest.raises(DataError, match="names no field of the rating or label"):
        parsed(b"text", Format(kind="text"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"__label__2 good, said \xc3\xa9", Review("good, said \u00e9", 7)),
        (b" __label__1\ttabbed  text", Review("tabbed  text", 6)),
        (b"__label__1", Review("", 6)),
        (b"__label__3 text", "bad_label"),
        (b"__label__1 __label__2 text", "bad_label"),
        (b"text __label__1", "no_label"),
        (b"\x0b", "no_label"),
        (b"__label__1 \xff", "not_utf8"),
    ],
)
def test_a_line_of_fasttext_is_its_label_and_the_rest(line: bytes, expected: Review | str) -> None:
    assert parsed(line, Format(kind="fasttext"), LABELLED) == expected


def test_further_fields_are_kept_as_they_are() -> None:
    form = Format(kind="json", text=("text",), value="stars", keep=("id", "stars", "more"))
    assert parsed(b'{"text": "a", "stars": 4, "id": [1]}', form) == Review("a", 4, ([1], 4, None))
    columns = Format(kind="separated", text=("1",), value="2", keep=("3", "1"), separator=";")
    assert parsed(b"a;4;b", columns) == Review("a", 4, ("b", "a"))
    assert parsed(b"a;4", columns) == "too_few_columns"
    rows = row_parser(Format(kind="parquet", text=("text",), keep=("raw",)), RATED, 1)
    assert rows(("a", b"\xff")) == Review("a", 1, (b"\xff",))


POLARITY = Format(kind="separated", text=("1",), value="2", separator="$LABEL$")
COLUMNS = ("a", "stars", "b")
NAMED = Format(kind="separated", text=("b", "a"), value="stars", header=True, separator="\t", columns=COLUMNS)


@pytest.mark.parametrize(
    ("line", "form", "codes", "expected"),
    [
        (b"a, b.$LABEL$1", POLARITY, LABELLED, Review("a, b.", 1)),
        (b"a\\nb$LABEL$0\r", POLARITY, LABELLED, Review("a b", 0)),
        (b"a$LABEL$0$LABEL$1", POLARITY, LABELLED, Review("a", 0)),
        (b"a$LABEL$", POLARITY, LABELLED, "bad_label"),
        (b"a 1", POLARITY, LABELLED, "too_few_columns"),
        (b"\xff$LABEL$1", POLARITY, LABELLED, "not_utf8"),
        (b'one "\t3\ttwo', NAMED, RATED, Review('two one "', 3)),
        (b"one\t3\ttwo\r", NAMED, RATED, Review("two one", 3)),
        (b"one\t3", NAMED, RATED, "too_few_columns"),
        (b"one\t3\ttwo\tthree", NAMED, RATED, "too_many_columns"),
        (b"one\t0\ttwo", NAMED, RATED, "bad_rating"),
    ],
)
def test_a_separated_line_is_its_columns(line: bytes, form: Format, codes: Codes, expected: Review | str) -> None:
    assert parsed(line, form, codes) == expected


def test_the_polarity_sets_are_label_title_text() -> None:
    form = Format(kind="csv", text=("2", "3"), value="1")
    assert fields_parser(form, LABELLED)(["2", "A title", r"one\ntwo"]) == Review("A title one two", 2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("a", 5), Review("a", 5)),
        (("a", "5"), Review("a", 5)),
        ((None, 5), "no_text"),
        ((7, 5), "text_not_a_string"),
        (("a", None), "no_rating"),
        (("a", float("nan")), "bad_rating"),
        ((b"\xff", 5), "not_utf8"),
        (("\u00e9" * (MAX_LINE_BYTES // 2 + 1), 9), "too_long"),
        (("\u00e9" * (MAX_LINE_BYTES // 2), 9), "bad_rating"),
    ],
)
def test_a_row_of_parquet_is_its_values(values: tuple[object, ...], expected: Review | str) -> None:
    form = Format(kind="parquet", text=("text",), value="rating")
    assert outcome(row_parser(form, RATED), values) == expected


@pytest.mark.parametrize(
    ("kind", "more", "wrong"),
    [
        ("xml", {"text": ("a",)}, "xml is not a format"),
        ("json", {}, "no field of the text is named for json"),
        ("csv", {"text": ("1",), "separator": "||"}, "a separator of csv is one character"),
        ("separated", {"text": ("1",), "separator": ""}, "a separator is at least one character"),
        ("csv", {"text": ("text",)}, "'text' is not a column; .* numbers from 1"),
        ("csv", {"text": ("0",)}, "'0' is not a column"),
        ("csv", {"text": ("body",), "header": True, "columns": ("a", "b")}, "no column 'body'; the header names a, b"),
    ],
)
def test_a_format_that_makes_no_sense_is_refused(kind: str, more: dict[str, Any], wrong: str) -> None:
    with pytest.raises(DataError, match=wrong):
        Format(kind=kind, **more)


@pytest.mark.parametrize("form", [SNAP, POLARITY, NAMED, Format(kind="text")])
def test_a_format_survives_its_way_through_json(form: Format) -> None:
    assert Format.from_json(json.loads(json.dumps(form.to_json()))) == form


@pytest.mark.parametrize(("line", "blank"), [(b"", True), (b" \t\r", True), (b"\x0b", False), (b"0", False)])
def test_only_json_white_space_makes_a_line_blank(line: bytes, blank: bool) -> None:
    assert is_blank(line) is blank
