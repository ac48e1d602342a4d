"""Words of lines: fast and plain ones are the same, and those of NLTK are NLTK's."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer, WordPunctTokenizer

from corpus import text
from corpus.stream.stream_settings import TOKENISERS, StreamSettings
from corpus.stream.tokenisers import END, Tokenise, Words, words_of_line, words_of_lines

ODD = "a B don't mice. ,,\"'' \t\r\x1c\x1f\x85\xa0é\u0301²½İΣς\u2028\u200b«„_-—3.14 & &amp; &#10; 鱼 \U0001f41f"
line = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_characters="\n", codec="utf-8")), max_size=40)


@cache
def ways(name: str, *, lowercase: bool = False, lemmatize: bool = False) -> tuple[Tokenise, Words]:
    settings = StreamSettings(sources=("/a",), tokeniser=name, lowercase=lowercase, lemmatize=lemmatize)
    return words_of_line(settings), words_of_lines(settings)


@given(lines=st.lists(line, max_size=8), lowercase=st.booleans(), lemmatize=st.booleans())
@pytest.mark.parametrize("name", TOKENISERS)
def test_many_lines_have_the_words_of_each(name: str, lines: list[str], lowercase: bool, lemmatize: bool) -> None:
    plain, fast = ways(name, lowercase=lowercase, lemmatize=lemmatize)
    assert fast(lines) == [word for each in lines for word in (*plain(each), END)]


@given(line=line)
def test_the_words_are_those_of_the_tokenisers_that_give_them_their_names(line: str) -> None:
    assert ways("treebank")[0](line) == NLTKWordTokenizer().tokenize(line)
    assert ways("punctuation")[0](line) == WordPunctTokenizer().tokenize(line)
    assert ways("spaces")[0](line) == line.split()
    assert ways("letters")[0](line) == text.words(line)


@pytest.mark.parametrize("name", TOKENISERS)
def test_words_of_more_than_a_hundred_characters_are_left_out(name: str) -> None:
    kept, lost = "x" * 100, "y" * 101
    plain, fast = ways(name)
    assert plain(f"a {lost} {kept} b") == ["a", kept, "b"]
    assert fast([f"a {lost} {kept} b", lost]) == ["a", kept, "b", END, END]


def test_a_very_long_line_is_cut_between_words_as_nltks_expressions_end_by_the_clock() -> None:
    many = "fish, " * 30_000
    assert ways("treebank")[0](many) == ["fish", ","] * 30_000
    assert len(ways("treebank")[0]("(" * 100_000)) == 100_000


def test_lemmas_are_those_of_nouns() -> None:
    assert ways("spaces", lemmatize=True)[0]("mice and 2 houses") == ["mouse", "and", "2", "house"]
