"""Known datasets are recognised by their field names in any spelling. The format of any file is detected or refused."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from common.display import is_printable
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import LabelEncoder, MalformedLineError
from corpus.reading.inputs.detect import detect_format
from corpus.reading.inputs.fields import choose_fields
from corpus.reading.inputs.layouts import LAYOUTS, Layout
from corpus.reading.parsing import line_parser
from corpus.reading.sources import ReadingOptions
from tests.corpus.reading.inputs.beginnings import CONTENTS

NONE = ReadingOptions()


SPELLINGS = st.sampled_from(["", " ", "_", "-", "_ "])
CASES = st.sampled_from([str.lower, str.upper, str.title, str.swapcase, str])
PREFIXES = st.sampled_from(["", "reviews.", "Reviews.", "data.reviews.", "my reviews."])


@st.composite
def spelled(draw: st.DrawFn, name: str, prefix: str) -> str:
    """Draw a spelling of a field name: any case, with separators between any two letters."""
    between = [draw(SPELLINGS) if draw(st.integers(0, 4)) == 0 else "" for _ in name[1:]] + [""]
    letters = "".join(letter + mark for letter, mark in zip(name.replace("_", " "), between, strict=True))
    return prefix + draw(CASES)(letters)


@given(st.data(), st.sampled_from(LAYOUTS), PREFIXES)
def test_known_datasets_need_no_options_in_any_spelling(data: st.DataObject, layout: Layout, prefix: str) -> None:
    names = tuple(data.draw(spelled(name, prefix)) for name in layout.text)
    value = data.draw(spelled(layout.value, prefix))
    fields = dict.fromkeys(data.draw(st.permutations([*names, value, "id", "brand"])), "x")
    assert choose_fields("a.json", fields, NONE, None) == (names, value, layout.labelled)


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
def test_any_beginning_is_detected_or_refused(content, whole, options, code, name) -> None:
    refusal, settled = "", None
    try:
        settled = detect_format(name, content, whole, options, code)
    except DataError as error:
        refusal = str(error)
    assert is_printable(refusal)
    if settled is not None and settled.format.kind in ("json", "separated", "fasttext", "text"):
        codes = LabelEncoder(Settings(labelled=settled.labelled))
        parse = line_parser(settled.format, codes, code)
        for line in content.split(b"\n"):
            with suppress(MalformedLineError):
                parse(line)
