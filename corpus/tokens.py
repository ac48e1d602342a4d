"""Splits a text into words as fastText's classification example does (rule 1b of docs/reference/dataset.md).

Unlike rule 1, rule 1b keeps digits, punctuation and letters outside ASCII. Unlike fastText's example, it also handles
capital letters and white space outside ASCII.

Do not clean a cleaned text again. `<br` and `/>` can be two cleaned words, but joined by a space they are a line break,
which is removed.

`token_hash`, `ngram_buckets` and `char_ngrams` compute the same values as fastText's `Dictionary`, so that n-grams
share the same buckets as in fastText.
"""

import re
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase, '"')
_SPACE = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")  # as in str.isspace
_BREAK = "<br />"
_TOKEN = re.compile(r"['.,()!?]|[^'.,()!?;:\0\s]+", re.ASCII)
_CLEANED = re.compile(r"""['.,()!?]|[^'.,()!?;:\0\s"A-Z]+""", re.ASCII)

_FNV_START, _FNV_FACTOR = 0x811C9DC5, 0x01000193
NGRAM_FACTOR = 116049371


def fold(text: str) -> str:
    """Return the text in lower case and with spaces for other white space. An ASCII text is returned unchanged."""
    return text if text.isascii() else _SPACE.sub(" ", text.lower())


def tokens(text: str) -> list[str]:
    """Return the words of a text, in lower case and without `"`. Each character of `'.,()!?` is a word by itself.

    `<br />`, `;`, `:`, NUL and white space separate words. All other characters are parts of words.
    """
    return _TOKEN.findall(fold(text).translate(_LOWER).replace(_BREAK, " "))


def is_token(text: str) -> bool:
    """Return whether a string is one cleaned word by rule 1b."""
    return _CLEANED.fullmatch(text) is not None and fold(text) == text


def token_hash(word: bytes) -> int:
    """Return fastText's 32-bit hash of a word: FNV-1a, but with bytes of at least 128 as negative numbers."""
    found = _FNV_START
    for byte in word:
        signed = byte - 256 if byte >= 128 else byte
        found = ((found ^ signed) * _FNV_FACTOR) % 2**32
    return found


def ngram_buckets(hashes: Sequence[int], n: int, buckets: int) -> list[int]:
    """Return the bucket (0 to `buckets` - 1) of each n-gram of 2 to `n` words in a text.

    The n-grams are ordered by first word, as in fastText.

    `hashes` has the `token_hash` of each word, in the order of the text. As in fastText, the hashes are used as signed
    32-bit numbers.
    """
    signed = [number - 2**32 if number >= 2**31 else number for number in hashes]
    found = []
    for first, number in enumerate(signed):
        for following in signed[first + 1 : first + n]:
            number = (number * NGRAM_FACTOR + following) % 2**64
            found.append(number % buckets)
    return found


def char_ngrams(word: str, lengths: range) -> list[str]:
    """Return the character n-grams of `<word>` with these lengths.

    As in fastText, they are ordered by first character, then by length.

    The n-grams `<` and `>` of length 1 are excluded. An n-gram that occurs several times is returned several times.
    """
    framed = f"<{word}>"
    return [
        framed[first : first + length]
        for first in range(len(framed))
        for length in lengths
        if first + length <= len(framed) and (length > 1 or 0 < first < len(framed) - 1)
    ]
