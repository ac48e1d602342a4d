"""Any beginning is understood or refused in a sentence, and fields are known by names as people spell them."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import Codes, MalformedLineError
from corpus.reading.inputs.detect import detect_format
from corpus.reading.inputs.fields import choose_fields
from corpus.reading.inputs.names import LABEL_FIELDS, RATINGS, TEXTS
from corpus.reading.parsing import line_parser
from corpus.reading.sources import ReadingOptions
from tests.corpus.reading.inputs.beginnings import CONTENTS

NONE = ReadingOptions()


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


PIECES = st.sampled_from(
    [
        *(b"<html>\x1b[2J", b'{"\x7f": "\\u001b"}'),
        *(line.encode("latin-1") for content in CONTENTS.values() for line in content.splitlines()),
    ]
)
BEGINNINGS = st.binary(max_size=60) | st.lists(PIECES | st.binary(max_size=9), max_size=6).map(b"\n".join)
WISHES = st.builds(
    ReadingOptions,
    separator=st.sampled_from([None, ",", "\t", "$LABEL$"]),
    text=st.sampled_from([(), ("text",), ("1",), ("2", "1")]),
    label=st.sampled_from([None, "label", "1", "3"]),
)


@given(BEGINNINGS, st.booleans(), WISHES, st.sampled_from([None, 0, 1]), st.sampled_from(["a", "a.csv", "a.json.gz"]))
def test_any_beginning_is_understood_or_refused(
    content: bytes, whole: bool, options: ReadingOptions, code: int | None, name: str
) -> None:
    refusal, settled = "", None
    try:
        settled = detect_format(name, content, whole, options, code)
    except DataError as error:
        refusal = str(error)
    assert refusal.isprintable()
    if settled is not None and settled.format.kind in ("json", "separated", "fasttext", "text"):
        codes = Codes(Settings(labelled=settled.labelled))
        parse = line_parser(settled.format, codes, code)
        for line in content.split(b"\n"):
            with suppress(MalformedLineError):
                parse(line)
