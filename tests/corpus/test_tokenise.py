"""The fast tokeniser gives the same words as `corpus.text.words`, and ids as a list would."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.text import load_stopwords, words
from corpus.tokenise import Tokeniser
from tests import oracle

STOPWORDS = sorted(load_stopwords())

PIECES = st.sampled_from(
    [
        *(
            "a",
            "z",
            "'",
            "''",
            " ",
            ".",
            "&amp;",
            "&#39;",
            "&lt",
            "&",
            "&quot;",
            "&#34;",
            "amp;",
            "#3",
            "4;",
            ";",
            "\x07",
            "@[`{",
            "&#" + "1" * 4301,
            "\u2019",
            "\u0130",
            "\u212a",
            "caf\u00e9",
            "\x7f",
            "\x00",
        ),
        *("don't", "o'clock'", "'tis", "the", "Seven77", "sevenab", "eightabc", "nineabcde", "sixteenletterswd"),
        *("seventeenlettersw", "x" * 40, "Y" * 41, "it's" * 9),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=30)


class PlainTokeniser:
    """What `Tokeniser` does, a word at a time."""

    def __init__(self, stopwords: list[str]) -> None:
        self.known = list(stopwords)
        self.first_kept = len(stopwords)

    def ids(self, text: str) -> list[int]:
        found = []
        for word in words(text):
            if word not in self.known:
                self.known.append(word)
            found.append(self.known.index(word))
        return [number for number in found if number >= self.first_kept]


def assert_equals_plain(tokeniser: Tokeniser, plain: PlainTokeniser, texts: list[str]) -> None:
    found = tokeniser(texts)
    starts = np.concatenate(([0], found.ends[:-1]))
    assert [found.ids[a:b].tolist() for a, b in zip(starts, found.ends, strict=True)] == [plain.ids(t) for t in texts]
    begin = 0
    for text, end in zip(texts, found.cleaned_ends.tolist(), strict=True):
        assert found.cleaned[begin:end].tobytes().decode() == "".join(f"{word} " for word in words(text))
        begin = end
    assert len(tokeniser) == len(plain.known)
    assert tokeniser.join_words(np.arange(len(tokeniser))).decode() == " ".join(plain.known)


@settings(max_examples=400)
@given(st.lists(st.lists(TEXTS, min_size=1, max_size=6), max_size=4), st.booleans())
def test_any_texts_have_the_words_of_the_plain_twin(blocks: list[list[str]], with_stopwords: bool) -> None:
    stopwords = STOPWORDS if with_stopwords else []
    tokeniser, plain = Tokeniser(stopwords), PlainTokeniser(stopwords)
    for texts in blocks:
        assert_equals_plain(tokeniser, plain, texts)


@pytest.mark.parametrize(
    "length", [1, 8, 16, 17, *(pytest.param(length, marks=pytest.mark.slow) for length in (3, 7, 9, 15, 18, 40))]
)
def test_a_dictionary_that_outgrows_its_tables_forgets_nothing(length: int) -> None:
    letters = np.array(list(b"abcdefghijklmnopqrstuvwxyz'"), np.uint8)
    rng = np.random.default_rng(length)
    made = {f"x{bytes(rng.choice(letters, length - 1)).decode()}".strip("'") for _ in range(120_000)}
    listed = sorted(made)
    tokeniser = Tokeniser(STOPWORDS)
    first = tokeniser([" ".join(listed)])
    known = len(tokeniser)
    again = tokeniser([" ".join(listed)])
    assert np.array_equal(first.ids, again.ids)
    assert len(tokeniser) == known
    unknown = [word for word in listed if word not in STOPWORDS]
    assert len(set(first.ids.tolist())) == len(unknown)
    assert tokeniser.join_words(first.ids).decode().split() == unknown


@pytest.mark.parametrize("digits", ["9" * 4301, "0" * 4300 + "65", "0" * 4298 + "65", "1" * 9000])
@pytest.mark.parametrize("end", ["", ";", "e9", ";;lamp"])
def test_a_number_of_more_digits_than_python_reads_is_no_letter(digits: str, end: str) -> None:
    text = f"the &#{digits}{end} lamp"
    assert words(text) == oracle.cleaned_words(text)
    assert_equals_plain(Tokeniser(), PlainTokeniser([]), [text])


@pytest.mark.parametrize("before", [0, 1, 61, 62, 63, 64, 65, 126, 127, 128])
@pytest.mark.parametrize("length", [1, 2, 8, 17, 64, 65, 130])
def test_words_may_begin_and_end_at_any_bit(before: int, length: int) -> None:
    for filling in (" ", "a", "'"):
        texts = [filling * before + " " + "x" * length, "x" * length + "'", filling * before, "y" * length]
        assert_equals_plain(Tokeniser(), PlainTokeniser([]), texts)


def test_words_that_differ_in_one_late_letter_differ() -> None:
    stem = "abcdefgh" * 4
    listed = [stem[:n] + letter + stem[n:] for n in (0, 7, 8, 15, 16, 17, 31) for letter in "xyz"]
    assert len(set(Tokeniser()([" ".join(listed)]).ids.tolist())) == len(listed)


def test_words_are_added_as_they_are_and_clear_forgets_them() -> None:
    tokeniser = Tokeniser(["the"])
    assert tokeniser.add(b"lamp don't lamp").tolist() == [1, 2, 1]
    assert tokeniser.add(b"").tolist() == []
    assert tokeniser.join_words(np.array([2, 1])) == b"don't lamp"
    assert tokeniser.join_words(np.array([], np.int64)) == b""
    tokeniser.clear()
    assert len(tokeniser) == 1
    assert tokeniser(["The lamp"]).ids.tolist() == [1]
