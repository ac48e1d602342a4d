"""Texts to the ids of their words, a block of texts at a time: rule 1 of docs/dataset.md, fast.

More than half of preprocessing would be turning words into numbers, so this is the one place where Python's objects
are avoided. `scan` takes the letters of a word, eight at once, as an integer; that integer is the word's key in a hash
table, so that a word is neither copied nor compared. numba compiles it; `corpus.text.words` is what it has to equal.

The easy mistake is to trust a hash: words of more than 16 letters do not fit their key, and are compared letter by
letter.
"""

import html
import string
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit, uint64
from numba.cpython.unsafe.numbers import trailing_zeros

from jobs.stretches import gather, keep

Ids = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]

# What `scan` reads instead of a text's bytes: letters in lower case, apostrophes, the end of a text, and 0 for all
# else. So bit 6 says that a byte is a letter, and bit 5 that it is anything but 0.
_APOSTROPHE = ord("'")
_END = ord(" ")
_SEPARATOR = "\x7f"
_CLASSES = bytearray(256)
_CLASSES[ord("a") : ord("z") + 1] = _CLASSES[ord("A") : ord("Z") + 1] = string.ascii_lowercase.encode()
_CLASSES[_APOSTROPHE] = _APOSTROPHE
_CLASSES[ord(_SEPARATOR)] = _END
_LETTER_BITS, _ANY_BITS = np.uint64(0x4040404040404040), np.uint64(0x2020202020202020)

_SPACE = ord(" ")
# The letters of a word that are in its first and in its second integer, by the word's length.
_FIRST = np.array([2 ** (8 * n) - 1 for n in range(9)], np.uint64)
_SECOND = np.array([2 ** (8 * max(n - 8, 0)) - 1 for n in range(17)], np.uint64)
_TOP_BIT = np.uint64(1 << 63)  # letters are ASCII, so no letter sets it
# Odd numbers without pattern, as multiplicative hashing needs them (Knuth, volume 3, 6.4), and those of FNV-1a.
_SPREAD_FIRST, _SPREAD_SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_FNV_START, _FNV_FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)

# Integers are read at a word's last letter, and two at its first.
_SLACK = 16
_FIRST_BITS = 15


class Words(NamedTuple):
    """The words of N texts.

    `ids` of the kept words of all texts, one text after the other; `ends` (N,) where each text ends in them.
    `cleaned`: the cleaned texts in ASCII, one after the other, each word followed by a space; `cleaned_ends` (N,)
    where each text ends, with its last space.
    """

    ids: Ids
    ends: Places
    cleaned: npt.NDArray[np.uint8]
    cleaned_ends: Places


class Tokeniser:
    """A dictionary that grows with the texts it sees: ids in the order of the words' first appearance.

    The stopwords have the smallest ids; they are known but not kept. A word's id holds until `clear`.
    """

    def __init__(self, stopwords: Sequence[str] = ()) -> None:
        self._stopwords = " ".join(stopwords).encode("ascii")
        self._cleaned = np.zeros(1 << 20, np.uint8)
        self.clear()

    def __len__(self) -> int:
        """How many words are known, stopwords included."""
        return self._known

    def clear(self) -> None:
        """Forget all words but the stopwords."""
        self._bits = _FIRST_BITS
        # Two tables of open addressing with linear probing: words of up to 7 letters as (key, id), longer ones as
        # (key, second key, id, -). A key of 0 is a free slot.
        self._short = np.zeros(2 << self._bits, np.uint64)
        self._long = np.zeros(4 << self._bits, np.uint64)
        self._letters = np.zeros(1 << 16, np.uint8)
        self._word_ends = np.zeros(1 << 12, np.int64)  # of word i at i + 1
        self._known = self._first_kept = 0
        self.add(self._stopwords)
        self._first_kept = self._known

    def __call__(self, texts: Sequence[str]) -> Words:
        """The words of some texts; those never seen before get ids."""
        return self._scan(_joined(texts), len(texts))

    def add(self, words: bytes) -> Ids:
        """The ids of some words, cleaned ones with a space between, in order; new words get ids."""
        return self._scan(words.replace(b" ", b"\0") + b" ", 1).ids if words else np.empty(0, np.uint32)

    def letters_of(self, ids: npt.NDArray[Any]) -> bytes:
        """The words of some ids in order, with a space between."""
        ids = np.asarray(ids, np.int64)
        starts, lengths = self._word_ends[ids], self._word_ends[ids + 1] - self._word_ends[ids]
        ends = np.cumsum(lengths + 1)
        out = np.full(int(ends[-1]) if len(ids) else 1, _SPACE, np.uint8)
        gather(self._letters, starts, lengths, ends - lengths - 1, out)
        return out[:-1].tobytes()

    def _scan(self, classes: bytes, texts: int) -> Words:
        """The words of texts whose bytes are classes, each followed by an end."""
        source = classes + bytes(_SLACK)
        if len(self._cleaned) < len(source) + _SLACK:
            self._cleaned = np.zeros(2 * len(source) + _SLACK, np.uint8)
        ids = np.empty(len(source) // 2, np.uint32)
        ends, cleaned_ends = np.empty(texts, np.int64), np.empty(texts, np.int64)
        at, word, out, text = 0, 0, 0, 0
        while True:
            at, word, out, text, self._known = scan(
                *(np.frombuffer(source, np.uint8), _integers(source), len(classes)),
                *(at, word, out, text),
                *(self._cleaned, _integers(self._cleaned.data), ids, ends, cleaned_ends),
                *(self._short, self._long, np.uint64(64 - self._bits), self._letters, self._word_ends, self._known),
            )
            if at == len(classes):
                break
            self._grow(len(source))
        kept = keep(ids, ends, self._first_kept)
        return Words(ids[:kept], ends, self._cleaned[:out], cleaned_ends)

    def _grow(self, letters: int) -> None:
        """Room for twice the words, and for so many letters: whatever stopped `scan`."""
        if self._word_ends[self._known] + letters > len(self._letters):
            self._letters = np.concatenate((self._letters, np.zeros(len(self._letters) + letters, np.uint8)))
        if self._known + 1 == len(self._word_ends):
            self._word_ends = np.concatenate((self._word_ends, np.zeros(len(self._word_ends), np.int64)))
        if 4 * self._known > 3 * (len(self._short) // 2 - 1):
            self._bits += 1
            shift = np.uint64(64 - self._bits)
            self._short, self._long = _doubled(self._short, 2, shift), _doubled(self._long, 4, shift)


def _joined(texts: Sequence[str]) -> bytes:
    """The classes of the texts' bytes, each text followed by its end."""
    plain = [text if text.isascii() and "&" not in text else _plain(text) for text in texts]
    joined = _SEPARATOR.join([*plain, ""])
    if joined.count(_SEPARATOR) != len(texts):
        joined = _SEPARATOR.join([*(text.replace(_SEPARATOR, " ") for text in plain), ""])
    return joined.encode("ascii").translate(_CLASSES)


def _plain(text: str) -> str:
    """A text in ASCII that has the same words: what is not ASCII becomes a `?`, which parts words like it."""
    if "&" in text:
        text = html.unescape(text)
    if not text.isascii():
        text = text.replace("\u2019", "'").lower().encode("ascii", "replace").decode("ascii")
    return text


def _integers(buffer: Any) -> npt.NDArray[np.uint64]:
    """The 8 bytes from each place of a buffer as an integer, little end first: overlapping, and not aligned."""
    return np.ndarray((len(buffer) - 7,), "<u8", buffer, strides=(1,))


@njit(cache=True, nogil=True)
def scan(  # type: ignore[no-untyped-def]
    source, source8, size, at, word, out, text, cleaned, cleaned8, ids, ends, cleaned_ends,
    short, long, to_slot, letters, word_ends, known,
):  # fmt: skip
    """Write the cleaned words of texts to `cleaned`, each followed by a space, and their ids to `ids`.

    `source` (size,) holds the classes of the texts' bytes, and the names with an 8 are the same bytes as overlapping
    integers. `ends` and `cleaned_ends` say where each text ends, in words and in bytes. Stops before a new word for
    which there is no room. Returns how far it came: the values of `at` to `text`, and of `known`, to go on with.
    """
    mask = len(short) // 2 - 1
    while at < size:
        eight = source8[at]
        length = _bytes_before((~eight & _LETTER_BITS) >> uint64(6))
        after = source[at + length]
        if length == 0:
            if after == 0:
                at += _bytes_before((eight & _ANY_BITS) >> uint64(5))
            else:
                at += 1
                if after == _END:
                    ends[text], cleaned_ends[text] = word, out
                    text += 1
            continue
        end = at + length
        if length < 8 and after != _APOSTROPHE:
            key = eight & _FIRST[length]
            cleaned8[out] = key
        else:
            while length == 8 or source[end] == _APOSTROPHE:
                end += length != 8
                length = _bytes_before((~source8[end] & _LETTER_BITS) >> uint64(6))
                end += length
            length = end - at
            while source[at + length - 1] == _APOSTROPHE:
                length -= 1
            for place in range(0, length, 8):
                cleaned8[out + place] = source8[at + place]
            key = eight & _FIRST[min(length, 8)]
        if length < 8:
            slot = int64((key * _SPREAD_FIRST) >> to_slot)
            while short[2 * slot] != key and short[2 * slot] != 0:
                slot = (slot + 1) & mask
            known_as = int64(short[2 * slot + 1]) if short[2 * slot] != 0 else -1
        else:
            second = _second_key(cleaned, cleaned8, out, length)
            slot = int64(((key * _SPREAD_FIRST) ^ (second * _SPREAD_SECOND)) >> to_slot)
            known_as = _find_long(long, slot, mask, key, second, cleaned, out, length, letters, word_ends)
            if known_as < 0:
                slot = -1 - known_as
        if known_as < 0:
            begin = word_ends[known]
            if 4 * known > 3 * mask or known + 1 == len(word_ends) or begin + length > len(letters):
                break
            if length < 8:
                short[2 * slot], short[2 * slot + 1] = key, known
            else:
                long[4 * slot], long[4 * slot + 1], long[4 * slot + 2] = key, second, known
            letters[begin : begin + length] = cleaned[out : out + length]
            word_ends[known + 1] = begin + length
            known_as = known
            known += 1
        ids[word] = known_as
        word += 1
        out += length
        cleaned[out] = _SPACE
        out += 1
        at = end + (source[end] == 0)  # mostly one byte parts words, and then the next begins here
    return at, word, out, text, known


@njit(inline="always")
def _bytes_before(bits):  # type: ignore[no-untyped-def]
    """How many bytes of an integer come before the first whose lowest bit is set; 8 when none is."""
    return int64(trailing_zeros(bits) >> 3)  # type: ignore[call-arg]


@njit(cache=True, nogil=True)
def _second_key(cleaned, cleaned8, start, length):  # type: ignore[no-untyped-def]
    """The letters of a word from the ninth on, or a hash of all where they are too many."""
    if length <= 16:
        return cleaned8[start + 8] & _SECOND[length]
    key = _FNV_START
    for place in range(start, start + length):
        key = (key ^ uint64(cleaned[place])) * _FNV_FACTOR
    return key | _TOP_BIT


@njit(cache=True, nogil=True)
def _find_long(long, slot, mask, key, second, cleaned, start, length, letters, word_ends):  # type: ignore[no-untyped-def]
    """The id of a word of 8 letters or more, looked for from `slot` on; -1 - the free slot where it is new."""
    while long[4 * slot] != 0:
        if long[4 * slot] == key and long[4 * slot + 1] == second:
            found = int64(long[4 * slot + 2])
            begin = word_ends[found]
            same = length <= 16 or word_ends[found + 1] - begin == length
            place = 0
            while length > 16 and same and place < length:
                same = letters[begin + place] == cleaned[start + place]
                place += 1
            if same:
                return found
        slot = (slot + 1) & mask
    return -1 - slot


@njit(cache=True, nogil=True)
def _doubled(table, width, to_slot):  # type: ignore[no-untyped-def]
    """A table of twice the slots with the same words; `width` integers a slot."""
    doubled = np.zeros(2 * len(table), np.uint64)
    mask = len(doubled) // width - 1
    for old in range(0, len(table), width):
        if table[old] == 0:
            continue
        hashed = table[old] * _SPREAD_FIRST
        if width == 4:
            hashed ^= table[old + 1] * _SPREAD_SECOND
        slot = int64(hashed >> to_slot)
        while doubled[width * slot] != 0:
            slot = (slot + 1) & mask
        doubled[width * slot : width * slot + width] = table[old : old + width]
    return doubled
