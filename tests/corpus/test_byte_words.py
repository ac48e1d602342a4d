"""Texts as bytes: both forms are equal, names are found again, and a dataset of them gives the texts back."""

from hypothesis import given
from hypothesis import strategies as st

from corpus.byte_dictionary import ByteDictionary
from corpus.byte_words import NAMES, byte_words, is_byte_name
from corpus.encoding import FastEncoder, PlainEncoder
from corpus.text import digest, digests, word_ids

TEXTS = st.lists(st.text(st.characters(), max_size=20), max_size=5)


@given(TEXTS)
def test_the_fast_form_gives_the_bytes_of_the_plain_one(texts: list[str]) -> None:
    found = ByteDictionary()(texts)
    starts = [0, *found.ends.tolist()][: len(texts)]
    for text, start, end in zip(texts, starts, found.ends.tolist(), strict=True):
        assert [NAMES[number] for number in found.ids[start:end]] == byte_words(text)
    assert bytes(found.cleaned).split(b" ") == [*b" ".join([*(_utf8(text) for text in texts), b""]).split(b" ")]
    bounds = list(zip([0, *found.cleaned_ends.tolist()[:-1]], (found.cleaned_ends - 1).tolist(), strict=False))
    each = digests(found.cleaned.data, bounds)
    assert len(each) == 16 * len(texts)
    assert len({text: each[16 * n : 16 * n + 16] for n, text in enumerate(texts)}) == len(set(texts))


@given(TEXTS, st.lists(st.sampled_from(NAMES), unique=True, max_size=20), st.integers(1, 6) | st.none())
def test_both_encoders_give_the_same_rows(texts: list[str], vocabulary: list[str], row_length: int | None) -> None:
    ids = word_ids(vocabulary)
    plain, fast = (kind(ids, frozenset(), row_length, "bytes")(texts) for kind in (PlainEncoder, FastEncoder))
    for number, text in enumerate(texts):
        rows = [each.ids[each.starts[number] :][: each.lengths[number]].tolist() for each in (plain, fast)]
        expected = [ids.get(word, 1) for word in byte_words(text)][:row_length]
        assert rows == [expected, expected]


def test_names_are_those_of_bytes_alone() -> None:
    known = ByteDictionary()
    assert known.join_words(known.add(b"<0x41> <0x00>")) == b"<0x41> <0x00>"
    assert len(set(NAMES)) == len(known) == 256
    assert all(map(is_byte_name, NAMES))
    assert not any(map(is_byte_name, ("", "A", "<0x4>", "<0xgg>", "<0x41> ")))
    assert digest(byte_words("ab")) != digest(byte_words("a b"))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
