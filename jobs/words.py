"""Second step: adds up the word counts of all parts, and keeps the candidates for the vocabulary.

Because a reducer receives all counts of a word, `choose` needs only the candidates.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from corpus.dictionary import Dictionary
from corpus.rules import most_frequent_ids
from jobs.records import Arrays

Counts = npt.NDArray[np.int64]


class FrequentWords:
    """Keeps the `size` most frequent of the added words.

    Words and counts are separate, because a list of millions of pairs takes several times the memory.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._words: list[bytes] = []
        self._counts = np.zeros(0, np.int64)
        self.least = 0
        """Words that occur less often than this are not among the most frequent."""

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """Yield words with their counts, in any order."""
        return zip(self._words, self._counts.tolist(), strict=True)

    def add(self, words: Sequence[bytes], counts: Counts) -> None:
        """Add distinct words that were not added before, with their counts."""
        self._words += words
        self._counts = np.concatenate((self._counts, counts))
        # do not sort at each call, which is too slow if the vocabulary takes all words
        if len(self._words) > self._size:
            kept = most_frequent_ids(self._counts, self._joined, self._size)
            self._words, self._counts = [self._words[each] for each in kept], self._counts[kept]
            self.least = int(self._counts.min())

    def take(self) -> tuple[str, list[int]]:
        """Remove and return all words, separated by spaces, and their counts: the most frequent first, and equal counts
        in the order of their bytes."""
        by_word = np.array(sorted(range(len(self._words)), key=self._words.__getitem__), np.int64)
        order = by_word[np.argsort(-self._counts[by_word], kind="stable")]
        joined, counts = self._joined(order).decode(), self._counts[order].tolist()
        self._words.clear()
        return joined, counts

    def _joined(self, ids: Counts) -> bytes:
        return b" ".join([self._words[each] for each in ids])


class WordCounts:
    """Adds up the counts of words, bucket by bucket, and keeps the most frequent words of all buckets."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.candidates = FrequentWords(size)

    def add(self, blocks: Iterable[Arrays]) -> None:
        """Add all blocks of one bucket."""
        words, counts = _sums(blocks)
        ids = most_frequent_ids(counts, words.join_words, self._size, self.candidates.least)
        self.candidates.add(words.join_words(ids).split(), counts[ids])


def _sums(blocks: Iterable[Arrays]) -> tuple[Dictionary, Counts]:
    """Return the distinct words of the blocks, and the sum of the counts of each word."""
    words = Dictionary()
    counts = np.zeros(0, np.int64)
    for block in blocks:
        ids = words.add(block["words"].tobytes())
        if len(counts) < len(words):
            counts = np.concatenate((counts, np.zeros(2 * len(words) - len(counts), np.int64)))
        counts[ids] += block["counts"]  # `+=` is safe, because a block has each word once
    return words, counts[: len(words)]
