"""Second step: adds up the word counts of all parts, and keeps the candidates for the vocabulary.

Because a reducer receives all counts of a word, `choose` needs only the candidates.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from corpus.dictionary import Dictionary
from corpus.rules import most_frequent, most_frequent_ids
from jobs.records import Arrays


class WordCounts:
    """Adds up the counts of words, bucket by bucket, and keeps the most frequent words of all buckets."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._best: list[tuple[bytes, int]] = []
        self._least = 0

    def add(self, blocks: Iterable[Arrays]) -> None:
        """Add all blocks of one bucket."""
        words, counts = _sums(blocks)
        self._best += most_frequent_ids(counts, words.join_words, self._size, self._least)
        # do not sort at each bucket, which is too slow if the vocabulary takes all words
        if len(self._best) > self._size:
            self._best = most_frequent(self._best, self._size)
            self._least = self._best[-1][1]

    @property
    def candidates(self) -> Sequence[tuple[bytes, int]]:
        """Words with their counts, in any order. The most frequent words of all buckets are among them."""
        return self._best


def _sums(blocks: Iterable[Arrays]) -> tuple[Dictionary, npt.NDArray[np.int64]]:
    """Return the distinct words of the blocks, and the sum of the counts of each word."""
    words = Dictionary()
    counts = np.zeros(0, np.int64)
    for block in blocks:
        ids = words.add(block["words"].tobytes())
        if len(counts) < len(words):
            counts = np.concatenate((counts, np.zeros(2 * len(words) - len(counts), np.int64)))
        counts[ids] += block["counts"]  # `+=` is safe, because a block has each word once
    return words, counts[: len(words)]
