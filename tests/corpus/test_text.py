from hashlib import blake2b, sha256
from importlib import resources
from itertools import accumulate

from hypothesis import example, given
from hypothesis import strategies as st

from common.errors import DataError
from corpus import text
from tests import oracle


@given(st.text())
@example("Don&#39;t!  &amp;amp; it\u2019s 'quoted' ''")
@example("\u0130stanbul caf\u00e9 stra\u00dfe \u212aelvin")
def test_words_are_those_of_the_contract(written: str) -> None:
    assert text.words(written) == oracle.cleaned_words(written)


@given(st.text("abz' \n&;A\u2019", max_size=5) | st.text(max_size=4))
@example("a''b")
@example("a'")
@example("a\n")
@example("")
def test_cleaning_leaves_a_word_unchanged(written: str) -> None:
    assert text.is_word(written) == (text.words(written) == [written])


def test_the_digest_is_that_of_the_cleaned_text() -> None:
    assert text.digest(["so", "so"]) == blake2b(b"so so", digest_size=16).digest()


@given(st.lists(st.lists(st.text("abz", min_size=1, max_size=3), min_size=1, max_size=4)))
def test_digests_of_many_texts_equal_those_of_each_text(texts: list[list[str]]) -> None:
    written = [" ".join(cleaned).encode() for cleaned in texts]
    ends = list(accumulate(len(each) + 1 for each in written))
    bounds = [(end - len(each) - 1, end - 1) for each, end in zip(written, ends, strict=True)]
    found = text.digests(memoryview(b"".join(each + b" " for each in written)), bounds)
    assert found == b"".join(map(text.digest, texts))


@given(st.lists(st.sampled_from(["the", "a", "good", "bad", "rare"])), st.integers(1, 4))
def test_a_row_is_the_first_kept_words(words: list[str], length: int) -> None:
    row = text.encode_words(words, {"good": 2, "bad": 3}, frozenset({"the", "a"}), length)
    ids = {"good": 2, "bad": 3, "rare": 1}
    assert row == [ids[word] for word in words if word in ids][:length]


def test_the_stopwords_are_nltks_179_and_three_more() -> None:
    listed = resources.files("corpus").joinpath("stopwords_nltk_english.txt").read_bytes()
    assert sha256(listed).hexdigest().startswith("019f104b")
    assert len(text.load_stopwords("nltk")) == 179 + 3
    assert {"don't", "product", "would", "get"} <= text.load_stopwords()


def test_negations_may_be_kept() -> None:
    kept = text.load_stopwords("nltk") - text.load_stopwords("keep-negations")
    assert {"no", "nor", "not", "don't", "don", "won't", "wouldn't", "isn"} <= kept
    assert all(word in ("no", "nor", "not") or word.endswith("n't") or f"{word}'t" in kept for word in kept)
    assert {"the", "product", "but", "don"} & text.load_stopwords("keep-negations") == {"the", "product", "but"}


def test_stopwords_come_from_a_file_or_are_off(tmp_path) -> None:
    assert text.load_stopwords("none") == frozenset()
    file = tmp_path / "words.txt"
    file.write_bytes(b"\xef\xbb\xbfof\n\n the \n")  # with a byte-order mark, as some editors write it
    assert text.load_stopwords(str(file)) == {"of", "the"}


def test_an_impossible_stopword_and_a_missing_file_are_refused(tmp_path, messages) -> None:
    (tmp_path / "words.txt").write_text("of\nThe\n")
    for name in ("words.txt", "absent.txt"):
        with messages.raises(DataError):
            text.load_stopwords(str(tmp_path / name))
