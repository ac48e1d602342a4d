"""The fast dictionary of rule 1b has the words of `corpus.tokens.tokens`, and ids, counts and hashes as lists would."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus.token_dictionary import TokenDictionary
from corpus.tokens import tokens

PIECES = st.sampled_from(
    [
        *("a", "Z", " ", "\n", "\0", "\x7f", "\x85", "\xa0", "caf\u00e9", "\u00c9", "\u0130", "\U0001f600", "\uffff"),
        *("'", '"', '""', ".", ",", "(", ")", "!", "?", ";", ":", "-", "&amp;", "\u2019", "don't", '5"x"7', "!!!"),
        *(
            "<br />",
            "<BR />",
            '<"b"r" "/">',
            "<br",
            "<br /",
            "<br ",
            "<br\n/>",
            "<br\0/>",
            "/>",
            "<",
            "<<br />",
            "<br />>",
            "<b",
        ),
        *(
            "sevenab",
            "eightabc",
            "fifteenletters-",
            "sixteenletters--",
            "sixteenletters-\u00e9",
            "x" * 40,
            "\u00e9" * 99,
        ),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=30)


class PlainDictionary:
    """What `TokenDictionary` does, a word at a time."""

    def __init__(self, stopwords: list[str]) -> None:
        self.known = list(stopwords)
        self.first_kept = len(stopwords)
        self.counts: Counter[int] = Counter()

    def ids(self, text: str) -> list[int]:
        self.known += [word for word in dict.fromkeys(tokens(text)) if word not in self.known]
        found = [number for word in tokens(text) if (number := self.known.index(word)) >= self.first_kept]
        self.counts.update(found)
        return found


def assert_equals_plain(dictionary: TokenDictionary, plain: PlainDictionary, texts: list[str]) -> None:
    found = dictionary(texts)
    starts = np.concatenate(([0], found.ends[:-1])) if texts else found.ends
    assert [found.ids[a:b].tolist() for a, b in zip(starts, found.ends, strict=True)] == [plain.ids(t) for t in texts]
    begin = 0
    for text, end in zip(texts, found.cleaned_ends.tolist(), strict=True):
        assert found.cleaned[begin:end].tobytes().decode() == "".join(f"{word} " for word in tokens(text))
        begin = end
    numbers = np.arange(len(plain.known))
    assert len(dictionary) == len(plain.known)
    assert dictionary.join_words(numbers).decode() == " ".join(plain.known)
    assert dictionary.counts.tolist() == [plain.counts[number] for number in numbers]


@settings(max_examples=400)
@given(st.lists(st.lists(TEXTS, max_size=6), max_size=4), st.booleans())
@example([["<br\0/>"]], False)
@example([[], ["", "<br", "/>", '<"', "<br /"], ["\0", "a\0b"]], False)
def test_any_texts_have_the_words_of_the_plain_twin(blocks: list[list[str]], with_stopwords: bool) -> None:
    stopwords = ["a", ".", "caf\u00e9", "<br", "/>"] if with_stopwords else []
    dictionary, plain = TokenDictionary(stopwords), PlainDictionary(stopwords)
    for texts in blocks:
        assert_equals_plain(dictionary, plain, texts)


@pytest.mark.parametrize("piece", ["!", '"', "<", '<"', "<br /", "<br />", "\0", "\u00e9", "a ", "a. "])
def test_a_text_of_the_same_piece_many_times_has_the_words_of_the_plain_twin(piece: str) -> None:
    assert_equals_plain(TokenDictionary(), PlainDictionary([]), [piece * 70_000, "", piece])


@pytest.mark.parametrize("length", [8, 16, *(pytest.param(length, marks=pytest.mark.slow) for length in (2, 15, 17))])
def test_a_dictionary_that_outgrows_its_tables_forgets_nothing(length: int) -> None:
    letters = np.array(list("ab\u00e9\u4e2d0-$\U0001f600"))
    rng = np.random.default_rng(length)
    made = dict.fromkeys("".join(rng.choice(letters, length)) for _ in range(60_000))
    dictionary = TokenDictionary()
    first = dictionary([" ".join(made)])
    assert np.array_equal(first.ids, np.arange(len(made)))
    assert np.array_equal(dictionary([" ".join(made)]).ids, first.ids)
    assert len(dictionary) == len(made)
    assert dictionary.join_words(first.ids).decode().split(" ") == list(made)
    assert (dictionary.counts == 2).all()


def test_a_lone_surrogate_is_a_letter() -> None:
    assert TokenDictionary()(["a\ud800b a", "a \ud800"]).ids.tolist() == [0, 1, 1, 2]
    assert tokens("a\ud800b a") == ["a\ud800b", "a"]


def test_words_that_are_added_are_not_cleaned_again() -> None:
    dictionary = TokenDictionary()
    assert dictionary.add(b"<br /> <br").tolist() == [0, 1, 0]
    assert dictionary(["<br\n/>"]).ids.tolist() == [0, 1]
    assert dictionary.counts.tolist() == [1, 1]


def test_clear_forgets_words_and_counts_but_no_stopwords() -> None:
    dictionary = TokenDictionary(["the"])
    dictionary(["The lamp, the lamp"])
    assert dictionary.counts.tolist() == [0, 2, 1]
    dictionary.clear()
    assert (len(dictionary), dictionary.counts.tolist()) == (1, [0])
    assert dictionary([", lamp"]).ids.tolist() == [1, 2]
