"""Tokenisers return the same words as NLTK, or as the rule that they are named after."""

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus import text
from corpus.stream.stream_settings import TOKENISERS, StreamSettings
from corpus.stream.tokenisers import END, Words, words_of_lines

ODD = "a B don't mice. ,,\"'' \t\r\x1c\x1f\x85\xa0é\u0301²½İΣς\u2028\u200b«„_-—3.14 & &amp; &#10; 鱼 \U0001f41f"
line = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_characters="\n", codec="utf-8")), max_size=40)


@cache
def ways(name: str, *, lowercase: bool = False, lemmatize: bool = False) -> Words:
    return words_of_lines(StreamSettings(sources=("/a",), tokeniser=name, lowercase=lowercase, lemmatize=lemmatize))


@cache
def plain(name: str) -> Callable[[str], list[str]]:
    if name in ("treebank", "punctuation"):
        from nltk.tokenize import NLTKWordTokenizer, WordPunctTokenizer

        return (NLTKWordTokenizer if name == "treebank" else WordPunctTokenizer)().tokenize
    return {"spaces": str.split, "letters": text.words}[name]


@given(lines=st.lists(line, max_size=8), lowercase=st.booleans())
@pytest.mark.parametrize("name", TOKENISERS)
def test_tokenisers_give_the_words_of_the_functions_they_are_named_after(name, lines, lowercase) -> None:
    expected = [word for each in lines for word in (*plain(name)(each.lower() if lowercase else each), END)]
    assert ways(name, lowercase=lowercase)(lines) == expected


@pytest.mark.parametrize("name", TOKENISERS)
def test_words_of_more_than_a_hundred_characters_are_skipped(name: str) -> None:
    kept, lost = "x" * 100, "y" * 101
    assert ways(name)([f"a {lost} {kept} b", lost]) == ["a", kept, "b", END, END]


def test_a_very_long_line_is_split_between_words_before_nltk_times_out() -> None:
    many = "fish, " * 30_000
    assert ways("treebank")([many]) == [*["fish", ","] * 30_000, END]
    assert len(ways("treebank")(["(" * 100_000])) == 100_001


def test_lemmas_are_those_of_nouns() -> None:
    assert ways("spaces", lemmatize=True)(["mice and 2 houses"]) == ["mouse", "and", "2", "house", END]
