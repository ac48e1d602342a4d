"""Splits a text into words, and maps words to ids, one text at a time.

Implements rules 1, 2, 5 and 7 of docs/reference/dataset.md.

Clean the words of a text before any other rule. The digest, the check for empty texts, the stopwords and the vocabulary
use cleaned words, so "Don't!" and "don't" are the same text and the same word.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from importlib import resources

from common.errors import DataError
from common.files import DOCUMENT_BYTES, read_regular
from corpus.tokens import is_token, tokens

PADDING = 0
UNKNOWN = 1
FIRST_WORD = 2

DIGEST_BYTES = 16
EXTRA_STOPWORDS = ("product", "would", "get")

_CANDIDATE = re.compile(r"[a-z']+")
_WORD = re.compile(r"[a-z]([a-z']*[a-z])?")
# Python refuses to convert more digits to an integer, and no code point has so many digits.
_LONG = 4300
_LONG_NUMBER = re.compile(r"&#[0-9]{4301,};?")


def words(text: str) -> list[str]:
    """Return the cleaned words of a text by rule 1.

    Decodes HTML entities once, and changes the text to lower case. A word is a run of the letters a to z, with
    apostrophes only between letters.
    """
    lowered = unescape(text).replace("\u2019", "'").lower()
    return [word for run in _CANDIDATE.findall(lowered) if (word := run.strip("'"))]


def is_word(text: str) -> bool:
    """Return whether a string is one cleaned word by rule 1."""
    return _WORD.fullmatch(text) is not None


BY_RULE = {"letters": (words, is_word), "tokens": (tokens, is_token)}
"""For each rule of words, a function that splits a text into words, and one that checks whether a string is such a
word."""


def unescape(text: str) -> str:
    """Decode the HTML entities of a text. A numeric entity of more than 4,300 digits becomes U+FFFD."""
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text) if len(text) > _LONG else text)


def digest(cleaned: Sequence[str]) -> bytes:
    """Return the digest of a text: BLAKE2b (RFC 7693), with 16 bytes, of its cleaned words, joined by spaces."""
    return blake2b(" ".join(cleaned).encode(), digest_size=DIGEST_BYTES).digest()


def digests(cleaned: "memoryview[int]", bounds: Iterable[tuple[int, int]]) -> bytes:
    """Return the digests of many texts, concatenated. `bounds` has the start and end of each text in `cleaned`."""
    return b"".join([blake2b(cleaned[start:end], digest_size=DIGEST_BYTES).digest() for start, end in bounds])


def word_ids(vocabulary: Sequence[str]) -> dict[str, int]:
    """Return the id of each word. Ids start at 2, because 0 is padding and 1 is an unknown word."""
    return {word: rank + FIRST_WORD for rank, word in enumerate(vocabulary)}


def encode_words(
    cleaned: Iterable[str], ids: Mapping[str, int], stopwords: frozenset[str], row_length: int | None
) -> list[int]:
    """Return the row of a text, without padding: the ids of its words except for stopwords.

    The row ends after `row_length` words, or has all words if no `row_length` is given. An empty list means that the
    text has no words except for stopwords; such a text does not become a row.
    """
    row: list[int] = []
    for word in cleaned:
        if word not in stopwords:
            row.append(ids.get(word, UNKNOWN))
            if len(row) == row_length:
                break
    return row


STOPWORD_LISTS = ("nltk", "keep-negations", "none")
"""Names of the stopword lists that Shoal contains."""


def load_stopwords(choice: str = "nltk", rule: str = "letters") -> frozenset[str]:
    """Return the stopwords of a list or a file.

    `nltk` is NLTK's English list of 179 words, as NLTK distributed it from 2017 to 2023 (SHA-256 019f104b...). It also
    has the words `product`, `would` and `get`, which mean little in a review. `keep-negations` is the same list without
    negations: `no`, `nor`, `not`, words that end in `n't`, and such words without `'t`, such as `don`. `none` is an
    empty list. Any other value is the path of a UTF-8 file with one word per line. The words must be cleaned by the
    rule of words `rule`, "letters" or "tokens".

    Raises DataError if the file is unreadable or has a word that no cleaned text can contain.
    """
    if choice == "none":
        return frozenset()
    if choice in STOPWORD_LISTS:
        listed = resources.files("corpus").joinpath("stopwords_nltk_english.txt").read_text("ascii").split()
        whole = frozenset(listed) | frozenset(EXTRA_STOPWORDS)
        return whole if choice == "nltk" else whole - _negations(whole)
    try:
        listed = read_regular(choice, DOCUMENT_BYTES).decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DataError(
            f"cannot read the stopword file {choice}: {reason}; give {', '.join(STOPWORD_LISTS)}, or a text file with "
            "one word per line"
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
