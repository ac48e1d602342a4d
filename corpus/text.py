"""Splits a text into words and maps words to ids, one text at a time: rules 1, 2, 5 and 7 of docs/reference/dataset.md.

Clean first. Digest, emptiness, stopwords and vocabulary refer to the *cleaned* words, so "Don't!" and "don't" are the
same text and the same word.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from importlib import resources
from pathlib import Path

from common.errors import DataError
from common.files import require_regular
from corpus.tokens import is_token, tokens

PADDING = 0
UNKNOWN = 1
FIRST_WORD = 2

DIGEST_BYTES = 16
EXTRA_STOPWORDS = ("product", "would", "get")

_CANDIDATE = re.compile(r"[a-z']+")
_WORD = re.compile(r"[a-z]([a-z']*[a-z])?")
# Python refuses to parse a number with more digits, and no code point has so many.
_LONG = 4300
_LONG_NUMBER = re.compile(r"&#[0-9]{4301,};?")


def words(text: str) -> list[str]:
    """Return the cleaned words of a text: HTML entities decoded once, lower case, runs of a-z and inner apostrophes."""
    lowered = unescape(text).replace("\u2019", "'").lower()
    return [word for run in _CANDIDATE.findall(lowered) if (word := run.strip("'"))]


def is_word(text: str) -> bool:
    """Return whether a text is one cleaned word."""
    return _WORD.fullmatch(text) is not None


BY_RULE = {"letters": (words, is_word), "tokens": (tokens, is_token)}
"""For each rule of words: the function that splits a text, and the function that checks a word."""


def unescape(text: str) -> str:
    """Decode the HTML entities of a text. A number of more than 4,300 digits becomes U+FFFD."""
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text) if len(text) > _LONG else text)


def digest(cleaned: Sequence[str]) -> bytes:
    """Return the identity of a text: 16 bytes of BLAKE2b (RFC 7693) of its cleaned words, joined by spaces."""
    return blake2b(" ".join(cleaned).encode(), digest_size=DIGEST_BYTES).digest()


def digests(cleaned: "memoryview[int]", bounds: Iterable[tuple[int, int]]) -> bytes:
    """Return the concatenated digests of many texts. `bounds` has the start and end of each text in `cleaned`."""
    return b"".join([blake2b(cleaned[start:end], digest_size=DIGEST_BYTES).digest() for start, end in bounds])


def word_ids(vocabulary: Sequence[str]) -> dict[str, int]:
    """Return the id of each word: 2 for the most frequent, then upwards. 0 is padding, and 1 is unknown."""
    return {word: rank + FIRST_WORD for rank, word in enumerate(vocabulary)}


def encode_words(
    cleaned: Iterable[str], ids: Mapping[str, int], stopwords: frozenset[str], row_length: int | None
) -> list[int]:
    """Return the ids of the first `row_length` kept words, or of all if `row_length` is omitted, without padding.

    An empty list means that the text keeps no word, so it makes no row.
    """
    row: list[int] = []
    for word in cleaned:
        if word not in stopwords:
            row.append(ids.get(word, UNKNOWN))
            if len(row) == row_length:
                break
    return row


STOPWORD_LISTS = ("nltk", "keep-negations", "none")
"""Names of the stopword lists."""


def load_stopwords(choice: str = "nltk", rule: str = "letters") -> frozenset[str]:
    """Load the stopwords.

    `nltk` is NLTK's English list of 179 words, as NLTK distributed it from 2017 to 2023 (SHA-256 019f104b...), and
    `product`, `would`, `get`, which mean little in a review. `keep-negations` is the same list without `no`, `nor`,
    `not`, words that end in `n't`, and such words without `'t`, as `don`. `none` is empty. Any other value is the name
    of a UTF-8 file with one word per line, cleaned by the `rule` of words ("letters" or "tokens").

    Raises DataError if the file is unreadable or has words that no cleaned text can contain.
    """
    if choice == "none":
        return frozenset()
    if choice in STOPWORD_LISTS:
        listed = resources.files("corpus").joinpath("stopwords_nltk_english.txt").read_text("ascii").split()
        whole = frozenset(listed) | frozenset(EXTRA_STOPWORDS)
        return whole if choice == "nltk" else whole - _negations(whole)
    try:
        listed = require_regular(Path(choice)).read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DataError(
            f"cannot read the stopword file {choice}: {reason}; give {', '.join(STOPWORD_LISTS)}, or a text file with "
            "one word a line"
        ) from error
    chosen = [line.strip() for line in listed if line.strip()]
    for word in chosen:
        if not BY_RULE[rule][1](word):
            cleaned = "the rule of words is tokens" if rule == "tokens" else "lower case, a to z, inner apostrophes"
            raise DataError(
                f"{choice}: {word!r} is not a cleaned word ({cleaned}); it would never match, so correct or remove it"
            )
    return frozenset(chosen)


def _negations(listed: frozenset[str]) -> frozenset[str]:
    contracted = {word for word in listed if word.endswith("n't")}
    return frozenset(("no", "nor", "not")) | contracted | {word.removesuffix("'t") for word in contracted}
