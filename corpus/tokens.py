"""Splits a text into words as fastText's classification example does: rule 1b of docs/reference/dataset.md.

It splits one text at a time. Unlike rule 1 it keeps digits, punctuation and letters outside ASCII. Unlike that example
it handles capitals and white space outside ASCII. Do not clean a cleaned text again: `<br` and `/>` may be words, but
with a space between them they are a line break.

`token_hash`, `ngram_buckets` and `char_ngrams` follow fastText's `Dictionary`, so that n-grams share the same buckets
as in fastText.
"""

import re
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase, '"')
_SPACE = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")  # that of str.isspace
_BREAK = "<br />"
_TOKEN = re.compile(r"['.,()!?]|[^'.,()!?;:\0\s]+", re.ASCII)
_CLEANED = re.compile(r"""['.,()!?]|[^'.,()!?;:\0\s"A-Z]+""", re.ASCII)

_FNV_START, _FNV_FACTOR = 0x811C9DC5, 0x01000193
NGRAM_FACTOR = 116049371


def fold(text: str) -> str:
    """Lower all letters outside ASCII, and replace white space outside ASCII by spaces."""
    return text if text.isascii() else _SPACE.sub(" ", text.lower())


def tokens(text: str) -> list[str]:
    """Return the words of a text, in lower case and without `"`. Each of `'.,()!?` is a word.

    `<br />`, `;`, `:`, NUL and white space separate words. All other characters belong to them.
    """
    return _TOKEN.findall(fold(text).translate(_LOWER).replace(_BREAK, " "))


def is_token(text: str) -> bool:
    """Return whether a text is one cleaned word."""
    return _CLEANED.fullmatch(text) is not None and fold(text) == text


def token_hash(word: bytes) -> int:
    """Return fastText's 32-bit hash of a word: FNV-1a, with bytes from 128 up as negative numbers."""
    found = _FNV_START
    for byte in word:
        signed = byte - 256 if byte >= 128 else byte
        found = ((found ^ signed) * _FNV_FACTOR) % 2**32
    return found


def ngram_buckets(hashes: Sequence[int], n: int, buckets: int) -> list[int]:
    """Return the buckets (0 to `buckets` - 1) of a text's n-grams of 2 to `n` words, ordered by first word as in
    fastText.

    `hashes` are the `token_hash` of each word in order. They are taken as signed numbers, as in fastText.
    """
    signed = [number - 2**32 if number >= 2**31 else number for number in hashes]
    found = []
    for first, number in enumerate(signed):
        for following in signed[first + 1 : first + n]:
            number = (number * NGRAM_FACTOR + following) % 2**64
            found.append(number % buckets)
    return found


def char_ngrams(word: str, lengths: range) -> list[str]:
    """Return the n-grams of `<word>` with these lengths, in fastText's order: by first character, shorter first.

    The single characters `<` and `>` are excluded. Repeated n-grams are repeated in the result.
    """
    framed = f"<{word}>"
    return [
        framed[first : first + length]
        for first in range(len(framed))
        for length in lengths
        if first + length <= len(framed) and (length > 1 or 0 < first < len(framed) - 1)
    ]
