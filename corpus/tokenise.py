"""Maps texts to the ids of their words, a block of texts at a time.

This is the fast form of rule 1 of docs/reference/dataset.md.

Tokenisation with Python objects would take more than half of the time of preprocessing, so this module does not create
an object for each word. A mask has one bit for each byte, which is set if the byte belongs to a word. `find_runs`,
compiled by numba, finds words in 64 of these bits at a time. The words must be the same as those that
`corpus.text.words` returns.
"""

from collections.abc import Sequence

import numpy as np
from numba import int64, njit, uint64
from numba.cpython.unsafe.numbers import trailing_zeros

from common.compiled import compiled
from corpus.dictionary import Dictionary, FoundWords, TokenisedTexts, padded
from corpus.text import unescape

_SEPARATOR = "\x7f"
_END = ord(_SEPARATOR)
_APOSTROPHE = ord("'")
_A, _LETTERS = ord("a"), 26
_LOWER = 0x20  # bit that is set in lower-case letters and in an apostrophe, but not in capital letters

# The most frequent HTML entities. No other entity contains one of these strings.
_QUOTES = ("&quot;", "&#34;")
# The typographic apostrophe, and the characters outside ASCII that have ASCII letters in lower case.
_NEARLY_ASCII = (("\u2019", "'"), ("\u0130", "i?"), ("\u212a", "k"))
_ONE = np.uint64(1)


class Tokeniser(Dictionary):
    """Dictionary that splits texts into words by rule 1."""

    def __call__(self, texts: Sequence[str]) -> TokenisedTexts:
        """Return the ids of the words of the texts. Words that are not in the dictionary are added to it."""
        return self.look_up(_found(_join_as_ascii(texts)))


def _found(texts: bytes) -> FoundWords:
    """Return the positions of the words in ASCII texts, with the separator after each text."""
    source = padded(texts)
    lower = source | np.uint8(_LOWER)
    bits = np.packbits((lower - _A < _LETTERS) | (source == _APOSTROPHE), bitorder="little")
    most = len(texts) // 2 + 2
    starts, stops = np.empty(most, np.uint32), np.empty(most, np.uint32)
    words = strip_apostrophes(lower, starts, stops, find_runs(bits.view("<u8"), starts, stops))
    return FoundWords(lower, starts[: words + 1], stops[:words], np.flatnonzero(source == _END))


def _join_as_ascii(texts: Sequence[str]) -> bytes:
    """Return the texts converted to ASCII with the same words, and the separator after each text."""
    plain = [text if text.isascii() and "&" not in text else _as_ascii(text) for text in texts]
    joined = _SEPARATOR.join([*plain, ""])
    if joined.count(_SEPARATOR) != len(texts):
        joined = _SEPARATOR.join([*(text.replace(_SEPARATOR, " ") for text in plain), ""])
    return joined.encode("ascii")


def _as_ascii(text: str) -> str:
    """Return a text converted to ASCII with the same words.

    Characters outside ASCII become `?`, which separates words too.
    """
    if "&" in text:
        for quote in _QUOTES:
            text = text.replace(quote, '"')
        if "&" in text:
            text = unescape(text)
    if not text.isascii():
        for letter, plain in _NEARLY_ASCII:
            text = text.replace(letter, plain)
        text = text.encode("ascii", "replace").decode("ascii")
    return text


@compiled
def find_runs(bits, starts, stops):  # type: ignore[no-untyped-def]
    """Write the positions of all runs of set bits to `starts` and `stops`, in order. Return the number of runs.

    `bits` has 64-bit integers, each with its lowest bit first. The last integer must be 0.
    """
    started = stopped = 0
    carry = uint64(0)
    for number in range(len(bits)):
        here = bits[number]
        before = (here << _ONE) | carry
        carry = here >> uint64(63)
        rises, falls = here & ~before, before & ~here
        while rises != 0:
            starts[uint64(started)] = 64 * number + _lowest(rises)
            started += 1
            rises &= rises - _ONE
        while falls != 0:
            stops[uint64(stopped)] = 64 * number + _lowest(falls)
            stopped += 1
            falls &= falls - _ONE
    starts[started] = 64 * len(bits)  # beyond the last text
    return started


@compiled
def strip_apostrophes(lower, starts, stops, runs):  # type: ignore[no-untyped-def]
    """Strip apostrophes from both ends of each run, and remove runs that are then empty. Return the number of words.

    Changes `starts` and `stops` in place. `starts` has one more entry than runs; this entry is
    moved to the position after the last remaining word.
    """
    words = 0
    for run in range(runs):
        start, stop = starts[uint64(run)], stops[uint64(run)]
        while start < stop and lower[uint64(start)] == _APOSTROPHE:
            start += 1
        while start < stop and lower[uint64(stop - 1)] == _APOSTROPHE:
            stop -= 1
        starts[uint64(words)], stops[uint64(words)] = start, stop
        words += start < stop
    starts[words] = starts[runs]
    return words


@njit(inline="always")
def _lowest(bits):  # type: ignore[no-untyped-def]
    """Return the position of the lowest set bit."""
    return int64(trailing_zeros(bits))  # type: ignore[call-arg]
