import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.formats import MALFORMED_REASONS, MalformedLineError, Review, is_blank, parse_snap_line
from tests import oracle

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
RATINGS = st.sampled_from([1, 5, 3.0, 4.5, 0, 6, "2", "2.0", " 4 ", "4,0", "", "five", "0x1", "1_0", True, None, [5]])


def parsed(line: bytes) -> Review | str:
    try:
        return parse_snap_line(line)
    except MalformedLineError as error:
        return error.reason


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"reviewText": "fine", "overall": 5.0}', Review("fine", 5)),
        (b' {"reviewText": "fine", "overall": 5}\r', Review("fine", 5)),
        (b'{"overall": "4", "reviewText": ""}', Review("", 4)),
        (b'{"overall": 1, "reviewText": "a", "overall": 2}', Review("a", 2)),
        (b'{"reviewText": "\\u00e9\\ud83d\\ude00", "overall": 1e0}', Review("\u00e9\U0001f600", 1)),
        (b"", "not_json"),
        (b"no", "not_json"),
        (b"[1, 2]", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b'{"overall": 5}', "no_text"),
        (b'{"reviewText": null, "overall": 5}', "text_not_a_string"),
        (b'{"reviewText": "a"}', "no_rating"),
        (b'{"reviewText": "a", "overall": 4.5}', "bad_rating"),
        (b'{"reviewText": "a", "overall": 0}', "bad_rating"),
        (b'{"reviewText": "a", "overall": 6}', "bad_rating"),
        (b'{"reviewText": "a", "overall": true}', "bad_rating"),
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


@given(st.dictionaries(st.sampled_from(["reviewText", "overall", "other"]), JSON_VALUES | RATINGS), st.booleans())
def test_any_object_is_read_as_the_contract_says(fields: dict, ascii_only: bool) -> None:
    line = json.dumps(fields, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert parsed(line) == oracle.review(line)


@given(st.text(), RATINGS, st.data())
def test_a_damaged_line_is_read_as_the_contract_says(text: str, rating: object, data: st.DataObject) -> None:
    line = bytearray(json.dumps({"reviewText": text, "overall": rating, "x": [1.5, "y"]}).encode())
    place = data.draw(st.integers(0, len(line) - 1))
    line[place : place + data.draw(st.integers(0, 3))] = data.draw(
        st.binary(max_size=3).filter(lambda b: b"\n" not in b)
    )
    assert parsed(bytes(line)) == oracle.review(bytes(line))


def test_every_reason_is_listed() -> None:
    assert len(set(MALFORMED_REASONS)) == len(MALFORMED_REASONS) == 6


def test_another_range_admits_other_ratings() -> None:
    assert parse_snap_line(b'{"reviewText": "a", "overall": 10}', (1, 10)).rating == 10


@pytest.mark.parametrize(("line", "blank"), [(b"", True), (b" \t\r", True), (b"\x0b", False), (b"0", False)])
def test_only_json_white_space_makes_a_line_blank(line: bytes, blank: bool) -> None:
    assert is_blank(line) is blank
