"""Maps words to ids with a dictionary to which new words are added. The dictionaries of both rules of words use it.

`look_up_words`, compiled by numba, reads eight bytes of a word as one integer. Two such integers are the word's key in
a hash table, so that a word of up to 15 bytes need not be compared byte by byte. The key of a longer word has its first
eight bytes and a hash. Always compare longer words byte by byte, because two of them can have the same key.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, uint64

from common.compiled import compiled
from corpus.segments import gather

Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]

_SPACE = ord(" ")
_MAX_KEY_BYTES = 15
"""Maximum length, in bytes, of a word that fits completely into its key."""
# For each word length, masks that select the word's bytes in the first and in the second integer of its key.
_FIRST = np.array([2 ** (8 * min(n, 8)) - 1 for n in range(_MAX_KEY_BYTES + 1)], np.uint64)
_SECOND = np.array([2 ** (8 * max(n - 8, 0)) - 1 for n in range(_MAX_KEY_BYTES + 1)], np.uint64)
_TOP_BIT = np.uint64(1 << 63)  # set in the keys of long words only
# Odd constants for multiplicative hashing (Knuth, volume 3, 6.4). The constants of FNV-1a follow.
_SPREAD_FIRST, _SPREAD_SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_ONE, _EIGHT = np.uint64(1), np.uint64(8)
_FNV_START, _FNV_FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)

# Zero bytes after the texts. With them, a mask consists of whole 64-bit integers, and eight bytes can be read at any
# position.
_PADDING_BYTES = 64
_FIRST_BITS = 15


class FoundWords(NamedTuple):
    """Positions of the words of N texts.

    `source` has the bytes of the words, and padding (see `padded`). Word i of W words is `source[starts[i] :
    stops[i]]`. A word has at least one byte, and does not contain the byte 0. `starts` has the shape (W + 1,), and its
    last entry is beyond all texts. `stops` has the shape (W,). Text n ends before `text_ends[n]`; `text_ends` has the
    shape (N,).
    """

    source: npt.NDArray[np.uint8]
    starts: Ids
    stops: Ids
    text_ends: Offsets


class TokenisedTexts(NamedTuple):
    """Words of N texts.

    `ids` has the ids of the kept words of all texts, concatenated. `ends`, of shape (N,), has the end of each text in
    `ids`. `cleaned` has the bytes of the cleaned texts, concatenated, with a space after each word. `cleaned_ends`, of
    shape (N,), has the end of each text in `cleaned`, after its last space.
    """

    ids: Ids
    ends: Offsets
    cleaned: npt.NDArray[np.uint8]
    cleaned_ends: Offsets


class Dictionary:
    """Dictionary to which new words are added. Ids are numbered from 0 in the order in which the words first appear.

    Stopwords have the smallest ids. They are known words, but `look_up` removes them from texts. The id of a word is
    valid until `clear` is called. `expected` is the number of words for which the dictionary has space from the start.
    """

    def __init__(self, stopwords: Sequence[str] = (), expected: int = 0) -> None:
        self._stopwords = " ".join(stopwords).encode()
        self._first_bits = max(_FIRST_BITS, (2 * expected).bit_length())
        self._cleaned = np.zeros(1 << 20, np.uint8)
        self.clear()

    def __len__(self) -> int:
        """Return the number of known words, including stopwords."""
        return self._known

    @property
    def letters(self) -> int:
        """Total length of all known words, in bytes."""
        return int(self._word_ends[self._known])

    def clear(self) -> None:
        """Remove all words except the stopwords."""
        self._bits = self._first_bits
        # Hash table by open addressing with linear probing. A slot is (first integer of the key, second integer, id). A
        # slot with the first integer 0 is free.
        self._table = np.zeros((1 << self._bits, 3), np.uint64)
        self._letters = np.zeros(1 << 16, np.uint8)
        self._word_ends = np.zeros(1 << 12, np.int64)  # word i ends at `_word_ends[i + 1]` in `_letters`
        self._known = self._first_kept = 0
        self.add(self._stopwords)
        self._first_kept = self._known

    def look_up(self, found: FoundWords) -> TokenisedTexts:
        """Return the ids of the words of the texts. Words that are not in the dictionary are added to it."""
        source, text_ends = found.source, found.text_ends
        if len(self._cleaned) < 2 * len(source):
            self._cleaned = np.zeros(4 * len(source), np.uint8)
        ids = np.empty(len(found.starts), np.uint32)
        ends, cleaned_ends = np.empty(len(text_ends), np.int64), np.empty(len(text_ends), np.int64)
        at, word, out, text = 0, 0, 0, 0
        while True:
            at, word, out, text, self._known = look_up_words(
                *(source, _integers(source.data), found.starts, found.stops, text_ends),
                *(at, word, out, text),
                *(self._cleaned, _integers(self._cleaned.data), ids, ends, cleaned_ends, self._first_kept),
                *(self._table, np.uint64(64 - self._bits), self._letters, self._word_ends, self._known),
            )
            if text == len(text_ends):
                return TokenisedTexts(ids[:word], ends, self._cleaned[:out], cleaned_ends)
            self._grow(len(source))

    def add(self, words: bytes) -> Ids:
        """Return the ids of cleaned words, in order; stopwords are left out.

        `words` are separated by spaces. New words are added to the dictionary.
        """
        if not words:
            return np.empty(0, np.uint32)
        spaces = np.flatnonzero(np.frombuffer(words, np.uint8) == _SPACE)
        starts, stops = np.concatenate(([0], spaces + 1, [len(words)])), np.concatenate((spaces, [len(words)]))
        end = np.array([len(words)])
        return self.look_up(FoundWords(padded(words), starts.astype(np.uint32), stops.astype(np.uint32), end)).ids

    def join_words(self, ids: npt.NDArray[Any]) -> bytes:
        """Return the words with these ids, in the order of the ids, separated by spaces."""
        ids = np.asarray(ids, np.int64)
        starts, lengths = self._word_ends[ids], self._word_ends[ids + 1] - self._word_ends[ids]
        ends = np.cumsum(lengths + 1)
        out = np.full(int(ends[-1]) if len(ids) else 1, _SPACE, np.uint8)
        gather(self._letters, starts, lengths, ends - lengths - 1, out)
        return out[:-1].tobytes()

    def word_hashes(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return a hash for each id, of shape (len(ids),). A hash depends only on the bytes of the word."""
        hashes = np.empty(len(ids), np.uint64)
        hash_words(self._letters, self._word_ends, ids, hashes)
        return hashes

    def _grow(self, letters: int) -> None:
        """Enlarge the arrays that were full when `look_up_words` returned.

        Doubles arrays with one entry per word, and adds space for at least `letters` bytes to the array of the words'
        bytes.
        """
        if self._word_ends[self._known] + letters > len(self._letters):
            self._letters = np.concatenate((self._letters, np.zeros(len(self._letters) + letters, np.uint8)))
        if self._known + 1 == len(self._word_ends):
            self._word_ends = np.concatenate((self._word_ends, np.zeros(len(self._word_ends), np.int64)))
        if 2 * self._known > len(self._table) - 1:
            self._bits += 1
            doubled = np.zeros((2 * len(self._table), 3), np.uint64)
            _fill(doubled, self._table, np.uint64(64 - self._bits))
            self._table = doubled


def padded(texts: bytes) -> npt.NDArray[np.uint8]:
    """Return the bytes of texts, followed by at least 64 zeros, up to a multiple of 64 bytes."""
    source = np.zeros(len(texts) + _PADDING_BYTES + -len(texts) % 64, np.uint8)
    source[: len(texts)] = np.frombuffer(texts, np.uint8)
    return source


def _integers(buffer: Any) -> npt.NDArray[np.uint64]:
    """Return a view of a buffer as little-endian 64-bit integers: entry i has the bytes from i to i + 7.

    Neighbouring entries overlap.
    """
    return np.ndarray((len(buffer) - 7,), "<u8", buffer, strides=(1,))


@compiled
def look_up_words(  # type: ignore[no-untyped-def]
    source, source8, starts, stops, text_ends, at, word, out, text, cleaned, cleaned8, ids, ends, cleaned_ends,
    first_kept, table, to_slot, letters, word_ends, known,
):  # fmt: skip
    """Write the words of texts to `cleaned`, each followed by a space, and the ids of the kept words to `ids`.

    `source`, `starts`, `stops` and `text_ends` are the fields of `FoundWords`. `source8` and `cleaned8` are `_integers`
    of `source` and `cleaned`. The function writes the end of each text to `ends` (in kept words) and to `cleaned_ends`
    (in bytes). If the dictionary's arrays have no space for a new word, the function returns before that word. The
    returned values of `at`, `word`, `out`, `text` and `known` are the arguments with which the next call continues.
    """
    mask = uint64(len(table) - 1)
    while text < len(text_ends):
        text_end = text_ends[text]
        while starts[uint64(at)] < text_end:
            start = uint64(starts[uint64(at)])
            length = stops[uint64(at)] - start
            if length <= _MAX_KEY_BYTES:
                key, second = source8[start] & _FIRST[length], source8[start + _EIGHT] & _SECOND[length]
                cleaned8[uint64(out)] = key
                cleaned8[uint64(out + 8)] = second
            else:
                for place in range(length):
                    cleaned[uint64(out) + place] = source[start + place]
                key, second = source8[start], _hashed(cleaned, out, length)
            slot = ((key * _SPREAD_FIRST) ^ (second * _SPREAD_SECOND)) >> to_slot
            while table[slot, 0] != 0 and not (
                table[slot, 0] == key
                and table[slot, 1] == second
                and (
                    length <= _MAX_KEY_BYTES or _equals_known(table[slot, 2], cleaned, out, length, letters, word_ends)
                )
            ):
                slot = (slot + _ONE) & mask
            if table[slot, 0] == 0:
                begin = word_ends[known]
                if 2 * known > mask or known + 1 == len(word_ends) or begin + length > len(letters):
                    return at, word, out, text, known
                table[slot, 0], table[slot, 1], table[slot, 2] = key, second, known
                for place in range(length):  # a loop is faster than a slice for so few bytes
                    letters[uint64(begin) + place] = cleaned[uint64(out) + place]
                word_ends[known + 1] = begin + length
                known += 1
            word_id = table[slot, 2]
            ids[uint64(word)] = word_id
            word += word_id >= first_kept
            out += int64(length)
            cleaned[uint64(out)] = _SPACE
            out += 1
            at += 1
        ends[text], cleaned_ends[text] = word, out
        text += 1
    return at, word, out, text, known


@compiled
def hash_words(letters, word_ends, ids, hashes):  # type: ignore[no-untyped-def]
    for number in range(len(ids)):
        begin = word_ends[ids[number]]
        hashes[number] = _hashed(letters, begin, word_ends[ids[number] + 1] - begin)


@compiled
def _hashed(cleaned, start, length):  # type: ignore[no-untyped-def]
    """Return the FNV-1a hash of a word, with the top bit set.

    This hash is the second integer in the key of a word of more than 15 bytes.
    """
    key = _FNV_START
    for place in range(start, start + length):
        key = (key ^ uint64(cleaned[place])) * _FNV_FACTOR
    return key | _TOP_BIT


@compiled
def _equals_known(word_id, cleaned, start, length, letters, word_ends):  # type: ignore[no-untyped-def]
    begin, place = word_ends[word_id], uint64(0)
    if word_ends[word_id + 1] - begin != length:
        return False
    while place < length and letters[begin + place] == cleaned[start + place]:
        place += _ONE
    return place == length


@compiled
def _fill(doubled, table, to_slot):  # type: ignore[no-untyped-def]
    """Insert the words of a hash table into `doubled`, an empty table with twice as many slots.

    Do not create the array in this function, and do not assign a whole row at once: each of these makes numba's
    compilation two seconds slower.
    """
    mask = uint64(len(doubled) - 1)
    for old in range(len(table)):
        if table[old, 0] != 0:
            slot = ((table[old, 0] * _SPREAD_FIRST) ^ (table[old, 1] * _SPREAD_SECOND)) >> to_slot
            while doubled[slot, 0] != 0:
                slot = (slot + _ONE) & mask
            for part in range(3):
                doubled[slot, part] = table[old, part]
