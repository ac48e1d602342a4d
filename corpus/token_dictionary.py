"""Maps texts to the ids of their words, a block of texts at a time.

This is the fast form of rule 1b of docs/reference/dataset.md.

`find_tokens`, compiled by numba, reads texts byte by byte. It copies the bytes of the words, because `"` is removed: a
word that contained `"` is not contiguous in its text. The words must be the same as those that `corpus.tokens.tokens`
returns.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numba import uint64

from common.compiled import compiled
from corpus.dictionary import Dictionary, FoundWords, TokenisedTexts, padded
from corpus.tokenise import Tokeniser
from corpus.tokens import fold

_LETTER, _WHITE_SPACE, _MARK, _QUOTE, _OPENING = range(5)
_END = 0  # follows each text; `_joined` replaces it inside texts


def _kinds() -> npt.NDArray[np.uint8]:
    """Return the kind of each byte value, of shape (256,). A byte without special meaning is a letter."""
    kinds = np.full(256, _LETTER, np.uint8)
    for kind, letters in (
        (_WHITE_SPACE, b"\0\t\n\v\f\r ;:"),
        (_MARK, b"'.,()!?"),
        (_QUOTE, b'"'),
        (_OPENING, b"<"),
    ):
        kinds[list(letters)] = kind
    return kinds


_KINDS = _kinds()
_LOWER = np.frombuffer(bytes(range(256)).lower(), np.uint8)
_REST_OF_BREAK = np.frombuffer(b"br />", np.uint8)
_QUOTATION_MARK = ord('"')
_ONE = np.uint64(1)


class TokenDictionary(Dictionary):
    """Dictionary that splits texts into words by rule 1b."""

    def __call__(self, texts: Sequence[str]) -> TokenisedTexts:
        """Return the ids of the words of the texts. Words that are not in the dictionary are added to it."""
        source = padded(_joined(texts))
        lower = np.empty_like(source)
        starts, stops = np.empty(len(source), np.uint32), np.empty(len(source), np.uint32)
        text_ends = np.empty(len(texts), np.int64)
        words = find_tokens(source, lower, starts, stops, text_ends)
        return self.look_up(FoundWords(lower, starts[: words + 1], stops[:words], text_ends))


def dictionary_of(rule: str, stopwords: Sequence[str]) -> Tokeniser | TokenDictionary:
    """Return a new dictionary with only the stopwords, for a rule of words: "letters" (1) or "tokens" (1b)."""
    return TokenDictionary(stopwords) if rule == "tokens" else Tokeniser(stopwords)


def _joined(texts: Sequence[str]) -> bytes:
    """Return the texts in UTF-8, folded by `fold`, with a NUL after each text.

    A lone surrogate is a letter, as in `corpus.tokens`. A NUL inside a text becomes a newline. It must not become a
    space, because a space can be a part of `<br />`.
    """
    folded = [text if text.isascii() else fold(text) for text in texts]
    joined = "\0".join([*folded, ""])
    if joined.count("\0") != len(texts):
        joined = "\0".join([*(text.replace("\0", "\n") for text in folded), ""])
    return joined.encode("utf-8", "surrogatepass")


@compiled
def find_tokens(source, lower, starts, stops, text_ends):  # type: ignore[no-untyped-def]
    """Write the bytes of all words to `lower`, without separators, and their positions to `starts` and `stops`.

    Return the number of words.

    `source` has the texts, each followed by NUL, and padding (see `padded`). With `lower` as their source, `starts`,
    `stops` and `text_ends` become fields of `FoundWords`.
    """
    at, out, begin, words, text = uint64(0), uint64(0), uint64(0), uint64(0), 0
    while text < len(text_ends):
        byte = source[at]
        kind = _KINDS[byte]
        at += _ONE
        if kind == _OPENING:
            after = _after_break(source, at)
            kind = _LETTER if after == at else _WHITE_SPACE
            at = after
        if kind == _LETTER:
            lower[out] = _LOWER[byte]
            out += _ONE
        elif kind != _QUOTE:
            if begin < out:
                starts[words], stops[words] = begin, out
                words += _ONE
            if kind == _MARK:
                starts[words], stops[words] = out, out + _ONE
                lower[out] = byte
                out += _ONE
                words += _ONE
            begin = out
            if byte == _END:
                text_ends[text] = out
                text += 1
    starts[words] = len(source)  # beyond the last text
    return words


@compiled
def _after_break(source, at):  # type: ignore[no-untyped-def]
    """If `<br />` begins at the byte before `at`, return its end. Otherwise return `at`. Skip any `"` in the tag."""
    place = at
    for letter in _REST_OF_BREAK:
        while source[place] == _QUOTATION_MARK:
            place += _ONE
        if _LOWER[source[place]] != letter:
            return at
        place += _ONE
    return place
