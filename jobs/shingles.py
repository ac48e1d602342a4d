"""Texts as sets of shingles, their MinHash signatures in bands, and the Jaccard index of two texts.

A shingle is SHINGLE words in a row; a shorter text is one shingle. The Jaccard index of two texts is the share of the
shingles of both that are in both. Reviews are short: one word that differs leaves an index of .8 to a text of 29 words,
where with shingles of 5 words it would need 49. Two texts have the same minimum under a random hash with a probability
of their index (Broder 1997). A band is BAND_ROWS minima: texts of the index s share one or more of BANDS bands with the
probability 1 - (1 - s^BAND_ROWS)^BANDS, which is .99 at .8, .89 at .7, .32 at .5, and 4e-6 at .05.

A text has a number: its part, its place in the part's side file, and whether it is in the training and in the test set.
Numbers are in the order of the digests, whatever the number of parts.
"""

import numpy as np
import numpy.typing as npt
from numba import uint32, uint64

from common.compiled import compiled
from corpus.dataset_settings import SHINGLE
from corpus.dictionary import Dictionary
from corpus.reading.storage import readable
from jobs.arrays import unpack_arrays
from jobs.records import side_url

BANDS, BAND_ROWS = 12, 5

IN_TRAINING, IN_TEST = np.uint64(1), np.uint64(2)
_PLACE_BIT, _PART_BIT = np.uint64(2), np.uint64(34)
_PLACES = np.uint64((1 << 32) - 1)

_START, _FACTOR, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(32)
_FACTORS = np.random.default_rng(0).integers(0, 1 << 63, BANDS * BAND_ROWS, np.uint64) * np.uint64(2) + np.uint64(1)
"""Of multiply-shift hashes (Dietzfelbinger 1997)."""

Numbers = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]


class PartTexts:
    """The texts of a side file: the words that their rows have."""

    def __init__(self, folder: str, part: str) -> None:
        """`part`: the name of a part that has texts."""
        with readable(side_url(folder, part)) as path:
            packed = path.read_bytes()
        side, dictionary = unpack_arrays(packed), Dictionary()
        self.bytes = len(packed)
        self._words = dictionary.word_hashes(dictionary.add(side["words"].tobytes()).astype(np.int64))
        self._ids = side["ids"].astype(np.uint32)
        self._lengths = side["lengths"].astype(np.int64)
        self._starts = np.cumsum(self._lengths) - self._lengths
        self.numbers = np.arange(len(self._lengths), dtype=np.uint64) << _PLACE_BIT
        """Of the texts, (n,), in order."""
        self.numbers |= np.uint64(int(part, 16)) << _PART_BIT
        for test, flag in enumerate((IN_TRAINING, IN_TEST)):
            self.numbers[np.unique(side["text"][side["test"] == test])] |= flag

    def bands(self) -> Numbers:
        """(BANDS, n): the hash of each band of each text."""
        hashes = np.empty((BANDS, len(self._lengths)), np.uint64)
        minima = np.empty(BANDS * BAND_ROWS, np.uint32)
        _fill_bands(self._ids, self._starts, self._lengths, self._words, _FACTORS, minima, hashes)
        return hashes

    def sets(self, numbers: Numbers) -> tuple[Numbers, Places]:
        """The different shingles of some texts, ascending, text after text; and where each text ends in them."""
        places = places_of(numbers)
        shingles = np.empty(int(np.maximum(self._lengths[places] - SHINGLE + 1, 1).sum()), np.uint64)
        ends = np.empty(len(places), np.int64)
        _fill_sets(self._ids, self._starts[places], self._lengths[places], self._words, shingles, ends)
        return shingles[: ends[-1] if len(ends) else 0], ends


def parts_of(numbers: Numbers) -> Places:
    """The parts of some texts."""
    return (numbers >> _PART_BIT).astype(np.int64)


def places_of(numbers: Numbers) -> Places:
    """The places of some texts in their parts' side files."""
    return ((numbers >> _PLACE_BIT) & _PLACES).astype(np.int64)


def jaccard_indices(
    one: tuple[Numbers, Places], first: Places, other: tuple[Numbers, Places], second: Places
) -> npt.NDArray[np.float64]:
    """The Jaccard index of each pair of texts: `first[i]` of the sets `one`, and `second[i]` of the sets `other`."""
    found = np.empty(len(first), np.float64)
    _fill_indices(*one, first, *other, second, found)
    return found


@compiled
def _shingle(ids, at, length, words):  # type: ignore[no-untyped-def]
    """The hash of `length` words at a place."""
    key = _START
    for place in range(at, at + length):
        key = (key ^ words[uint64(ids[uint64(place)])]) * _FACTOR
        key ^= key >> _HALF
    return key


@compiled
def fill_minima(ids, start, length, words, factors, minima):  # type: ignore[no-untyped-def]
    """Write a text's MinHash signature to `minima`: the least hash of its shingles by each of the `factors`."""
    minima[:] = 0xFFFFFFFF
    size = min(length, SHINGLE)
    for at in range(start, start + max(1, length - SHINGLE + 1)):
        key = _shingle(ids, at, size, words)
        for number in range(len(factors)):
            minima[number] = min(minima[number], uint32((key * factors[number]) >> _HALF))


@compiled
def _fill_bands(ids, starts, lengths, words, factors, minima, hashes):  # type: ignore[no-untyped-def]
    for text in range(len(starts)):
        fill_minima(ids, starts[text], lengths[text], words, factors, minima)
        for band in range(BANDS):
            key = _START
            for row in range(band * BAND_ROWS, (band + 1) * BAND_ROWS):
                key = (key ^ uint64(minima[row])) * _FACTOR
                key ^= key >> _HALF
            hashes[band, text] = key


@compiled
def _fill_sets(ids, starts, lengths, words, shingles, ends):  # type: ignore[no-untyped-def]
    out = 0
    for text in range(len(starts)):
        begin, size = out, min(lengths[text], SHINGLE)
        count = max(1, lengths[text] - SHINGLE + 1)
        for at in range(count):
            shingles[begin + at] = _shingle(ids, starts[text] + at, size, words)
        shingles[begin : begin + count].sort()
        for at in range(begin, begin + count):
            if at == begin or shingles[at] != shingles[out - 1]:
                shingles[out] = shingles[at]
                out += 1
        ends[text] = out


@compiled
def _fill_indices(one, one_ends, first, other, other_ends, second, found):  # type: ignore[no-untyped-def]
    for pair in range(len(first)):
        left, left_end = one_ends[first[pair] - 1] if first[pair] else 0, one_ends[first[pair]]
        right, right_end = other_ends[second[pair] - 1] if second[pair] else 0, other_ends[second[pair]]
        of_both, in_both = left_end - left + right_end - right, 0
        while left < left_end and right < right_end:
            if one[left] == other[right]:
                in_both += 1
            ahead = one[left] <= other[right]
            right += one[left] >= other[right]
            left += ahead
        found[pair] = in_both / (of_both - in_both)
