"""Fast dictionaries return the same words as the plain functions, and fast encoders the same rows as plain encoders."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus import encoding
from corpus.encoding import EncodedRows, FastEncoder, PlainEncoder
from corpus.text import UNKNOWN, encode_words, load_stopwords, word_ids, words
from corpus.token_dictionary import TokenDictionary
from corpus.tokenise import Tokeniser
from corpus.tokens import tokens
from tests import oracle


@dataclass(frozen=True)
class Rule:
    """Rule of words: its fast dictionary, its plain function, and stopwords for the tests."""

    dictionary: Callable[..., Any]
    plain: Callable[[str], list[str]]
    stopwords: tuple[str, ...]


RULES = {
    "letters": Rule(Tokeniser, words, tuple(sorted(load_stopwords()))),
    "tokens": Rule(TokenDictionary, tokens, ("a", ".", "caf\u00e9", "<br", "/>")),
}
BY_RULE = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)

SHORT = "a Z ' '' \" \"\" . , ( ) ! ? ; : - & @[`{ 4; #3 amp; &amp; &#39; &lt &quot; &#34; the The don't o'clock' 'tis"
BREAKS = '<br /> | <BR /> | <"b"r" "/"> | <br | <br / | <br  | <br\n/> | <br\0/> | /> | < | <<br /> | <br />> | <b'
LENGTHS = '5"x"7 !!! Seven77 sevenab eightabc nineabcde fifteenletters- sixteenletters-- sixteenletters-\u00e9'
ODD = (*"\0\x07\x7f\x85\xa0\u00c9\u0130\u2019\u212a\U0001f600\uffff", "caf\u00e9")
LONG = ("sixteenletterswd", "seventeenlettersw", "x" * 40, "Y" * 41, "it's" * 9, "\u00e9" * 99, "&#" + "1" * 4301)
PIECES = st.sampled_from([" ", "\n", *SHORT.split(), *BREAKS.split(" | "), *LENGTHS.split(), *ODD, *LONG])
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=30)


class PlainDictionary:
    def __init__(self, rule: Rule, stopwords: tuple[str, ...] = ()) -> None:
        self.words_of = rule.plain
        self.known = list(stopwords)
        self.first_kept = len(stopwords)

    def ids(self, text: str) -> list[int]:
        found = self.words_of(text)
        self.known += [word for word in dict.fromkeys(found) if word not in self.known]
        return [number for word in found if (number := self.known.index(word)) >= self.first_kept]


def assert_equals_plain(dictionary: Any, plain: PlainDictionary, texts: list[str]) -> None:
    found = dictionary(texts)
    starts = np.concatenate(([0], found.ends[:-1])) if texts else found.ends
    assert [found.ids[a:b].tolist() for a, b in zip(starts, found.ends, strict=True)] == [plain.ids(t) for t in texts]
    begin = 0
    for text, end in zip(texts, found.cleaned_ends.tolist(), strict=True):
        assert found.cleaned[begin:end].tobytes().decode() == "".join(f"{word} " for word in plain.words_of(text))
        begin = end
    numbers = np.arange(len(plain.known))
    assert len(dictionary) == len(plain.known)
    assert dictionary.join_words(numbers).decode() == " ".join(plain.known)


@BY_RULE
@settings(max_examples=200)
@given(st.lists(st.lists(TEXTS, max_size=6), max_size=4), st.booleans())
@example([["<br\0/>"]], False)
@example([[], ["", "<br", "/>", '<"', "<br /"], ["\0", "a\0b"]], False)
def test_any_texts_have_the_words_of_the_plain_function(rule, blocks, with_stopwords) -> None:
    stopwords = rule.stopwords if with_stopwords else ()
    dictionary, plain = rule.dictionary(list(stopwords)), PlainDictionary(rule, stopwords)
    for texts in blocks:
        assert_equals_plain(dictionary, plain, texts)


@pytest.mark.parametrize("piece", ["!", '"', "<", '<"', "<br /", "<br />", "\0", "\u00e9", "a ", "a. "])
def test_repetitive_texts_have_the_words_of_the_plain_function(piece: str) -> None:
    assert_equals_plain(TokenDictionary(), PlainDictionary(RULES["tokens"]), [piece * 70_000, "", piece])


@BY_RULE
@pytest.mark.parametrize("length", [2, 8, 16])
def test_a_growing_dictionary_keeps_all_words(rule: Rule, length: int) -> None:
    letters = np.array(
        list("abcdefghijklmnopqrstuvwxyz" if rule is RULES["letters"] else "ab\u00e9\u4e2d0-$\U0001f600")
    )
    chosen = np.random.default_rng(length).choice(letters, (40_000, length))
    made = [word for word in dict.fromkeys(map("".join, chosen.tolist())) if word not in rule.stopwords]
    dictionary = rule.dictionary()
    first = dictionary([" ".join(made)])
    assert np.array_equal(first.ids, np.arange(len(made)))
    assert np.array_equal(dictionary([" ".join(made)]).ids, first.ids)
    assert len(dictionary) == len(made)
    assert dictionary.join_words(first.ids).decode().split(" ") == made


@pytest.mark.parametrize("digits", ["9" * 4301, "0" * 4300 + "65", "0" * 4298 + "65", "1" * 9000])
@pytest.mark.parametrize("end", ["", ";", "e9", ";;lamp"])
def test_a_number_with_more_digits_than_python_parses_is_not_a_letter(digits: str, end: str) -> None:
    text = f"the &#{digits}{end} lamp"
    assert words(text) == oracle.cleaned_words(text)
    assert_equals_plain(Tokeniser(), PlainDictionary(RULES["letters"]), [text])


@pytest.mark.parametrize("before", [0, 1, 61, 62, 63, 64, 65, 126, 127, 128])
def test_words_may_begin_and_end_at_any_bit(before: int) -> None:
    for length in (1, 2, 8, 17, 64, 65, 130):
        for filling in (" ", "a", "'"):
            texts = [filling * before + " " + "x" * length, "x" * length + "'", filling * before, "y" * length]
            assert_equals_plain(Tokeniser(), PlainDictionary(RULES["letters"]), texts)


@BY_RULE
def test_words_that_differ_in_one_letter_have_different_ids(rule: Rule) -> None:
    stem = "abcdefgh" * 4
    listed = [stem[:n] + letter + stem[n:] for n in (0, 7, 8, 15, 16, 17, 31) for letter in "xyz"]
    assert len(set(rule.dictionary()([" ".join(listed)]).ids.tolist())) == len(listed)


def test_a_lone_surrogate_is_a_letter() -> None:
    assert TokenDictionary()(["a\ud800b a", "a \ud800"]).ids.tolist() == [0, 1, 1, 2]
    assert tokens("a\ud800b a") == ["a\ud800b", "a"]


@BY_RULE
def test_clear_forgets_all_words_except_stopwords(rule: Rule) -> None:
    dictionary = rule.dictionary(["the"])
    assert dictionary.add(b"lamp don't lamp").tolist() == [1, 2, 1]
    assert dictionary.add(b"").tolist() == []
    assert dictionary.join_words(np.array([2, 1])) == b"don't lamp"
    assert dictionary.join_words(np.array([], np.int64)) == b""
    dictionary.clear()
    assert len(dictionary) == 1
    assert dictionary(["The lamp"]).ids.tolist() == [1]


def rows(encoded: EncodedRows) -> list[list[int]]:
    return [
        encoded.ids[start : start + length].tolist()
        for start, length in zip(encoded.starts, encoded.lengths, strict=True)
    ]


PIECES_OF_NO_RULE = ["a", "don't", "the", "The", "xylophonesxylophon", "a b", "caf\u00e9", "&amp;", "'", "."]
# The words in a model's vocabulary are not checked, so they need not be words of the rule.
CLAIMED = st.sampled_from([*PIECES_OF_NO_RULE, *BREAKS.split(" | ")]) | st.text("abc'")
PLAIN = {"letters": words, "tokens": tokens}


@settings(max_examples=200)
@given(
    st.lists(st.lists(TEXTS, max_size=6), max_size=3),
    st.lists(CLAIMED.filter(bool), unique=True, max_size=6),
    st.frozensets(CLAIMED.filter(bool), max_size=3),
    st.integers(1, 5) | st.none(),
    st.sampled_from(sorted(PLAIN)),
)
@example([["the lamp", "", "the", "lamp lamp a don't lamp"]], ["lamp", "the"], frozenset({"the"}), 3, "letters")
@example([["The <br\n/>, the caf\u00e9"]], ["<br", "/>", "caf\u00e9"], frozenset({"the"}), None, "tokens")
def test_any_texts_have_the_rows_of_the_plain_encoder(blocks, vocabulary, stopwords, row_length, rule) -> None:
    ids = word_ids(vocabulary)
    plain, fast = (kind(ids, stopwords, row_length, rule) for kind in (PlainEncoder, FastEncoder))
    for texts in blocks:
        expected = [encode_words(PLAIN[rule](text), ids, stopwords, row_length) for text in texts]
        assert rows(plain(texts)) == rows(fast(texts)) == expected


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("limit", ["_MAX_NEW_WORDS", "_MAX_NEW_BYTES"])
def test_an_encoder_forgets_only_unknown_words(monkeypatch: pytest.MonkeyPatch, rule: str, limit: str) -> None:
    monkeypatch.setattr(encoding, limit, 50)
    fast = FastEncoder(word_ids(["lamp", "cable"]), frozenset({"the"}), 100, rule)
    for block in range(20):
        unknown = [f"{chr(97 + block)}{chr(97 + word)}" for word in range(20)]
        assert rows(fast([f"the lamp {' '.join(unknown)} the cable"])) == [[2, *[UNKNOWN] * 20, 3]]
        assert len(fast._tokeniser) <= 3 + 50 + 20
        assert limit == "_MAX_NEW_WORDS" or fast._tokeniser.letters <= len("thelampcable") + 50 + 40
