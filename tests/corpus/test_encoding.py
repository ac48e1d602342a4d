"""The fast encoder of texts gives the same rows as the plain one."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus import encoding
from corpus.encoding import EncodedRows, FastEncoder, PlainEncoder
from corpus.text import UNKNOWN, encode_words, word_ids, words
from corpus.tokens import tokens

RULES = {"letters": words, "tokens": tokens}
PIECES = [
    *("a", "don't", "the", "The", "lamp", "x" * 17, "'", "''", " ", " ", ".", "&amp;", "&#39;", "\u2019", "\u212a"),
    *("caf\u00e9", "<br />", "<br", "/>", '"', "7"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=20)
# What a model claims as its words need be none.
CLAIMED = st.sampled_from(
    [*PIECES[:6], "xylophonesxylophon", "a b", "'a", "Lamp", "caf\u00e9", "&amp;", "'", ".", "<br", "/>", "<br />"]
) | st.text("abc'")


def rows(encoded: EncodedRows) -> list[list[int]]:
    return [
        encoded.ids[start : start + length].tolist()
        for start, length in zip(encoded.starts, encoded.lengths, strict=True)
    ]


@settings(max_examples=300)
@given(
    st.lists(st.lists(TEXTS, max_size=6), max_size=3),
    st.lists(CLAIMED.filter(bool), unique=True, max_size=6),
    st.frozensets(CLAIMED.filter(bool), max_size=3),
    st.integers(1, 5) | st.none(),
    st.sampled_from(sorted(RULES)),
)
@example([["the lamp", "", "the", "lamp lamp a don't lamp"]], ["lamp", "the"], frozenset({"the"}), 3, "letters")
@example([["The <br\n/>, the caf\u00e9"]], ["<br", "/>", "caf\u00e9"], frozenset({"the"}), None, "tokens")
def test_any_texts_have_the_rows_of_the_plain_twin(
    blocks: list[list[str]], vocabulary: list[str], stopwords: frozenset[str], row_length: int | None, rule: str
) -> None:
    ids = word_ids(vocabulary)
    plain, fast = (kind(ids, stopwords, row_length, rule) for kind in (PlainEncoder, FastEncoder))
    for texts in blocks:
        expected = [encode_words(RULES[rule](text), ids, stopwords, row_length) for text in texts]
        assert rows(plain(texts)) == rows(fast(texts)) == expected


def test_a_word_has_its_id_in_however_many_texts() -> None:
    texts = [f"lamp {'x' * (number % 30)} lamp" for number in range(1000)]
    ids = {"lamp": 2}
    assert rows(FastEncoder(ids, frozenset(), 100)(texts)) == rows(PlainEncoder(ids, frozenset(), 100)(texts))


def test_a_row_of_no_given_length_has_all_words() -> None:
    texts = ["lamp " * 70_000, "cable"]
    for kind in (PlainEncoder, FastEncoder):
        assert kind(word_ids(["lamp", "cable"]), frozenset(), None, "tokens")(texts).lengths.tolist() == [70_000, 1]


def test_unknown_words_are_forgotten_and_known_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_MOST_WORDS", 50)
    fast = FastEncoder(word_ids(["lamp", "cable"]), frozenset({"the"}), 100)
    for block in range(20):
        unknown = [f"never{chr(97 + block)}{chr(97 + word)}" for word in range(20)]
        (row,) = rows(fast([f"the lamp {' '.join(unknown)} the cable"]))
        assert row == [2, *[UNKNOWN] * 20, 3]
        assert len(fast._tokeniser) <= 3 + 50 + 20


@pytest.mark.parametrize("rule", RULES)
def test_long_unknown_words_are_forgotten_and_known_ones_are_not(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    monkeypatch.setattr(encoding, "_MOST_LETTERS", 5_000)
    fast = FastEncoder(word_ids(["lamp", "cable"]), frozenset({"the"}), 100, rule)
    for block in range(20):
        (row,) = rows(fast([f"the lamp {chr(97 + block) * 2_000} the cable"]))
        assert row == [2, UNKNOWN, 3]
        assert fast._tokeniser.letters <= len("thelampcable") + 5_000 + 2_000


def test_known_words_are_learnt_once_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_MOST_WORDS", 50)
    vocabulary = [f"word{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(300)]
    fast = FastEncoder(word_ids(vocabulary), frozenset(), 100)
    monkeypatch.setattr(fast._tokeniser, "clear", lambda: pytest.fail("it forgets words that it has to learn again"))
    assert rows(fast(vocabulary)) == [[number + 2] for number in range(300)]
