r"""Lines of text to words, by the rule that the settings name.

`treebank` is NLTK's NLTKWordTokenizer (`do n't`), `punctuation` its WordPunctTokenizer (`don ' t`), `spaces` splits at
white space, `letters` is the rule of words of docs/dataset.md (`don't`). None needs data files. A core takes 0.5 to
1.1, 5 to 13, 13 to 33, and 14 to 15 MB/s (docs/streaming.md).

NLTK's expressions end by the clock, after five seconds: keep that from being met, because a line would then have other
words on a busy machine.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby

from corpus import text
from corpus.stream.stream_settings import StreamSettings

END = "\n"
"""Stands after the words of each line; no word has one."""
MOST_WORD_CHARACTERS = 100
"""Longer words are left out: no language has them, and they would fill the memory."""

_PIECE = re.compile(r"(?s).{1,65536}(?!\S)|.{1,65536}")
_KEPT_LEMMAS = 1 << 17

Tokenise = Callable[[str], list[str]]
Words = Callable[[Sequence[str]], list[str]]
"""The words of some lines, and after those of each line END."""


def words_of_line(settings: StreamSettings) -> Tokenise:
    """The function that gives the words of one line, plainly."""
    tokenise = _TOKENISERS[settings.tokeniser]()
    lemma = _lemmatizer() if settings.lemmatize else None

    def words(line: str) -> list[str]:
        found = tokenise(line.lower() if settings.lowercase else line)
        kept = [word for word in found if len(word) <= MOST_WORD_CHARACTERS]
        return [lemma(word) for word in kept] if lemma else kept

    return words


def words_of_lines(settings: StreamSettings) -> Words:
    """The function that gives the words of many lines, fast."""
    tokenise = _punctuation_of_lines() if settings.tokeniser == "punctuation" else _one_by_one(settings.tokeniser)
    lemma = _lemmatizer() if settings.lemmatize else None

    def words(lines: Sequence[str]) -> list[str]:
        if not lines:
            return []
        joined = END.join(lines)
        found = tokenise((joined.lower() if settings.lowercase else joined).split(END))
        if max(map(len, found)) > MOST_WORD_CHARACTERS:
            found = [word for word in found if len(word) <= MOST_WORD_CHARACTERS]
        return list(map(lemma, found)) if lemma else found

    return words


def _one_by_one(name: str) -> Words:
    tokenise = _TOKENISERS[name]()

    def words(lines: Sequence[str]) -> list[str]:
        found: list[str] = []
        for line in lines:
            found += tokenise(line)
            found.append(END)
        return found

    return words


def _treebank() -> Tokenise:
    from nltk.tokenize import NLTKWordTokenizer

    tokenise = NLTKWordTokenizer().tokenize

    def words(line: str) -> list[str]:
        return [word for piece in _PIECE.findall(line) for word in tokenise(piece)]

    return words


def _punctuation_of_lines() -> Words:
    """Runs of lines that are ASCII by Python's own engine, which is six times as fast and there finds the same."""
    find_ascii, find = re.compile(r"\w+|[^\w\s]+|\n", re.ASCII).findall, _without_a_clock(r"\w+|[^\w\s]+|\n")

    def words(lines: Sequence[str]) -> list[str]:
        found: list[str] = []
        for is_ascii, run in groupby(lines, str.isascii):
            found += (find_ascii if is_ascii else find)(END.join((*run, "")))
        return found

    return words


def _without_a_clock(pattern: str) -> Tokenise:
    """All matches of a pattern by the engine of NLTK's tokenisers: of Unicode's rules it knows more than Python's."""
    from nltk import redos

    compiled = redos.compile(pattern)

    def find(line: str) -> list[str]:
        found: list[str] = compiled.findall(line, timeout=None)
        return found

    return find


_TOKENISERS: dict[str, Callable[[], Tokenise]] = {
    "treebank": _treebank,
    "punctuation": lambda: _without_a_clock(r"\w+|[^\w\s]+"),
    "spaces": lambda: str.split,
    "letters": lambda: text.words,
}


def _lemmatizer() -> Callable[[str], str]:
    from simplemma import lemmatize

    @lru_cache(_KEPT_LEMMAS)
    def lemma(word: str) -> str:
        if word == END:
            return word
        found = lemmatize(word, lang="en")
        return found if len(found.split()) == 1 and len(found) <= MOST_WORD_CHARACTERS else word

    return lemma
