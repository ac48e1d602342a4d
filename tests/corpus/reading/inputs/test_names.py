"""Which fields are the text and the rating or label, by names as people spell them."""

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from common.errors import DataError
from corpus.reading.inputs.detect import detect_format
from corpus.reading.inputs.fields import choose_fields
from corpus.reading.inputs.names import LABEL_FIELDS, RATINGS, TEXTS
from corpus.reading.inputs.understanding import understand_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from tests.corpus.reading.inputs.beginnings import understood
from tests.reviews import json_lines

NONE = ReadingOptions()
CLOTHING = ("", "Clothing ID", "Age", "Title", "Review Text", "Rating", "Recommended IND", "Positive Feedback Count")
"""The header of a popular file of reviews of clothes, whose first column has no name."""
PRODUCTS = (
    *("id", "asins", "brand", "keys", "name", "reviews.date", "reviews.doRecommend", "reviews.id"),
    *("reviews.numHelpful", "reviews.rating", "reviews.sourceURLs", "reviews.text", "reviews.title"),
)
"""The header of a popular file of reviews of products."""


def records(header: tuple[str, ...], text: str, value: str, count: int = 20) -> list[dict[str, str]]:
    said = ("broke, at once", "a fine lamp")
    return [dict.fromkeys(header, "x") | {text: said[n % 2], value: str(1 + n % 2 * 4)} for n in range(count)]


def written(folder: Path, kind: str, rows: list[dict[str, str]]) -> bytes:
    if kind == "json":
        return json_lines(*rows)
    if kind == "parquet":
        parquet.write_table(pa.Table.from_pylist(rows), folder / "made")
        return (folder / "made").read_bytes()
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    ("header", "text", "value"), [(CLOTHING, "Review Text", "Rating"), (PRODUCTS, "reviews.text", "reviews.rating")]
)
def test_popular_files_need_no_names(tmp_path: Path, header: tuple[str, ...], text: str, value: str, kind: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    found = understood(folder, f"a.{kind}", written(tmp_path, kind, records(header, text, value)))
    form = found.sources[0].format
    assert (form.text, form.value, found.labelled, found.warnings) == ((text,), value, False, ())
    assert found.sample.values == {"1": 10, "5": 10}
    assert "broke, at once" in found.sample.files[found.sources[0].address].first_texts


SPELLINGS = st.sampled_from(["", " ", "_", "-", "_ "])
CASES = st.sampled_from([str.lower, str.upper, str.title, str.swapcase, str])
PREFIXES = st.sampled_from(["", "reviews.", "Reviews.", "data.reviews.", "my reviews."])


@st.composite
def spelled(draw: st.DrawFn, name: str, prefix: str) -> str:
    """The name as somebody may spell it: other cases, and separators anywhere between two letters."""
    between = [draw(SPELLINGS) if draw(st.integers(0, 4)) == 0 else "" for _ in name[1:]] + [""]
    letters = "".join(letter + mark for letter, mark in zip(name.replace("_", " "), between, strict=True))
    return prefix + draw(CASES)(letters)


@given(st.data(), st.sampled_from(TEXTS), st.sampled_from((*RATINGS, *LABEL_FIELDS)), PREFIXES)
def test_names_are_known_in_every_spelling(data: st.DataObject, text: tuple[str, ...], value: str, prefix: str) -> None:
    names = tuple(data.draw(spelled(name, prefix)) for name in text)
    value_name = data.draw(spelled(value, prefix))
    fields = dict.fromkeys(data.draw(st.permutations([*names, value_name, "id", "brand"])), "x")
    found = choose_fields("a.json", fields, NONE, None)
    assert found == (names, value_name, value in LABEL_FIELDS, ())


@given(st.lists(st.text(max_size=9) | st.sampled_from(["Text", "reviews.text", "a.b.text", ".text", "."])))
def test_any_header_is_understood_or_refused_in_a_sentence(header: list[str]) -> None:
    fields = dict.fromkeys(header, "x")
    refusal, chosen = "", {""}
    try:
        found = choose_fields("a.json", fields, NONE, None)
        chosen = {*found.text, str(found.value)}
    except DataError as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert refusal or chosen <= set(fields)


@pytest.mark.parametrize(
    ("header", "chosen", "named"),
    [
        ("text,reviews.text,stars", ("text", "stars"), "'text' and 'reviews.text' may each be the text; 'text'"),
        (
            "Review Text,rating,Rating,Sentiment",
            ("Review Text", "rating"),
            "'rating' and 'Rating' and 'Sentiment' may each be the rating or label; 'rating' is",
        ),
        (
            "product.rating,reviews.rating,reviews.text",
            ("reviews.text", "reviews.rating"),
            "'reviews.rating' and 'product.rating' may each be the rating or label; 'reviews.rating' is",
        ),
        ("product.title,reviews.content,stars", ("reviews.content", "stars"), None),
        ("reviewText,text,overall", ("reviewText", "overall"), None),
    ],
)
def test_of_several_the_closest_is_taken_and_all_are_named(header: str, chosen: tuple[str, str], named: str) -> None:
    found = choose_fields("a.json", dict.fromkeys(header.split(","), "x"), NONE, None)
    assert (found.text, found.value) == ((chosen[0],), chosen[1])
    assert len(found.notes) == (named is not None)
    assert all(named in str(note) for note in found.notes)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (("content", "TITLE", "stars"), ("TITLE", "content")),
        (("Review Headline", "review_body", "stars", "id"), ("Review Headline", "review_body")),
        (("label", "Title", "text"), ("Title", "text")),
    ],
)
def test_a_part_of_a_text_in_a_closer_spelling_is_still_a_part(header: tuple[str, ...], text: tuple[str, ...]) -> None:
    found = choose_fields("a.json", dict.fromkeys(header, "x"), NONE, None)
    assert (found.text, found.notes) == (text, ())


def test_the_same_note_on_many_files_is_one_sentence(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.json").write_bytes(json_lines({"text": "a", "Text": "b", "stars": 1}))
    (note,) = understand_inputs(Inputs(files=(str(tmp_path),))).warnings
    assert note.startswith(f"in {tmp_path / 'a.json'} and 2 more files 'text' and 'Text' may each be the text;")


@pytest.mark.parametrize(
    ("header", "wrong"),
    [
        ("Review Text,reviewtext,Stars", r"the text \(Review Text or reviewtext\); name it by --text-field"),
        ("Review Text,Stars,Sentiment", r"the rating or label \(Stars or Sentiment\); name it by --rating-field or"),
        ("a.text,b.text,Stars", r"the text \(a\.text or b\.text\); name it by --text-field"),
        ("Review Text,Score", r"the rating or label; .* Review Text \(a lamp\), Score \(1\)"),
        ("Opinion,Stars", r"which field of a\.csv is the text"),
        ("x,y", r"the columns of a\.csv are not clear"),
    ],
)
def test_a_header_that_stays_unclear_is_refused_with_the_candidates(header: str, wrong: str) -> None:
    row = ",".join(["a lamp", "1", "2"][: header.count(",") + 1])
    with pytest.raises(DataError, match=wrong):
        detect_format("a.csv", f"{header}\n{row}\n".encode() * 2, True, NONE)


def test_a_choice_that_is_named_needs_no_note(tmp_path: Path) -> None:
    content = json_lines({"text": "a", "Text": "b", "stars": 1, "Rating": 2})
    assert understood(tmp_path, "a.json", content, text=("Text",), rating="Rating").warnings == ()
