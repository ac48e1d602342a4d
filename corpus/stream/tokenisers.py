"""Splits lines of text into words, by the rule that the settings name.

`treebank` is NLTK's NLTKWordTokenizer (`do n't`), and `punctuation` is NLTK's WordPunctTokenizer (`don ' t`). `spaces`
splits at white space. `letters` is rule 1 of docs/reference/dataset.md (`don't`). No rule needs data files. Speeds on
one core, in MB/s: `treebank` 0.5 to 1.1, `punctuation` 5 to 13, `spaces` 13 to 33, `letters` 14 to 15
(docs/how-to/stream-text.md).

By default, NLTK's regular expressions time out after five seconds. Do not allow such timeouts, because a line could
then have different words on a busy machine.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import groupby

from corpus import text
from corpus.stream.stream_settings import StreamSettings

END = "\n"
"""Token after the words of each line; no word contains it."""
MAX_WORD_CHARACTERS = 100
"""Maximum length of a word. Longer words occur in no language and would fill the memory, so they are skipped."""

_PIECE = re.compile(r"(?s).{1,65536}(?!\S)|.{1,65536}")
_KEPT_LEMMAS = 1 << 17

Tokenise = Callable[[str], list[str]]
Words = Callable[[Sequence[str]], list[str]]
"""Function that returns the words of lines, with END after the words of each line."""


def words_of_lines(settings: StreamSettings) -> Words:
    """Return the function that splits lines into words under these settings."""
    tokenise = _TOKENISERS[settings.tokeniser]()
    lemma = _lemmatizer() if settings.lemmatize else None

    def words(lines: Sequence[str]) -> list[str]:
        if not lines:
            return []
        joined = END.join(lines)
        found = tokenise((joined.lower() if settings.lowercase else joined).split(END))
        if max(map(len, found)) > MAX_WORD_CHARACTERS:
            found = [word for word in found if len(word) <= MAX_WORD_CHARACTERS]
        return list(map(lemma, found)) if lemma else found

    return words


def _one_by_one(tokenise: Tokenise) -> Words:
    def words(lines: Sequence[str]) -> list[str]:
        found: list[str] = []
        for line in lines:
            found += tokenise(line)
            found.append(END)
        return found

    return words


def _treebank() -> Words:
    from nltk.tokenize import NLTKWordTokenizer

    tokenise = NLTKWordTokenizer().tokenize

    def words(line: str) -> list[str]:
        return [word for piece in _PIECE.findall(line) for word in tokenise(piece)]

    return _one_by_one(words)


def _punctuation() -> Words:
    """Return the tokeniser for the rule `punctuation`.

    Consecutive ASCII lines are split by the module `re`, which is six times as fast and returns the same words. Other
    lines are split by `regex`, which NLTK's tokenisers use because it implements more rules of Unicode.
    """
    from nltk import redos

    pattern = r"\w+|[^\w\s]+|\n"
    find_ascii, find = re.compile(pattern, re.ASCII).findall, partial(redos.compile(pattern).findall, timeout=None)

    def words(lines: Sequence[str]) -> list[str]:
        found: list[str] = []
        for is_ascii, run in groupby(lines, str.isascii):
            found += (find_ascii if is_ascii else find)(END.join((*run, "")))
        return found

    return words


_TOKENISERS: dict[str, Callable[[], Words]] = {
    "treebank": _treebank,
    "punctuation": _punctuation,
    "spaces": lambda: _one_by_one(str.split),
    "letters": lambda: _one_by_one(text.words),
}


def _lemmatizer() -> Callable[[str], str]:
    from simplemma import lemmatize

    @lru_cache(_KEPT_LEMMAS)
    def lemma(word: str) -> str:
        if word == END:
            return word
        found = lemmatize(word, lang="en")
        return found if len(found.split()) == 1 and len(found) <= MAX_WORD_CHARACTERS else word

    return lemma
