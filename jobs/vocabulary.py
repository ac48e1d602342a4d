"""Job that adds up the word counts of all parts, and keeps the candidates for the vocabulary.

Input: the records of `deduplicate`. Output: the most frequent words of each reducer, as `word<TAB>count`, and the
tallies. Because a reducer receives all counts of a word, `choose` needs only these records.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from corpus.dictionary import Dictionary
from corpus.reading.tally import Tally, is_tally_key
from corpus.rules import most_frequent, most_frequent_ids
from jobs.job import PreprocessingJob, run_as_script
from jobs.records import Record, arrays_of


class CountWords(PreprocessingJob):
    """Map: emit records unchanged. Reduce: add up the counts of a bucket of words, and keep the most frequent words of
    all buckets."""

    def mapper(self, key: bytes, value: bytes) -> Iterator[Record]:
        self.report_bytes(len(value))
        yield key, value

    def mapper_final(self) -> None:
        self.report_bytes(0, at_once=True)

    def reducer_init(self) -> None:
        self.size = self.settings().vocabulary_size
        self.best: list[tuple[bytes, int]] = []
        self.least = 0

    def reducer(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        if is_tally_key(key):
            tally = Tally()
            tally.add_records(key, values)
            yield from tally.records()
            return
        words, counts = _sums(values)
        self.best += most_frequent_ids(counts, words.join_words, self.size, self.least)
        # do not sort at each bucket, which is too slow if the vocabulary takes all words
        if len(self.best) > self.size:
            self.best = most_frequent(self.best, self.size)
            self.least = self.best[-1][1]

    def reducer_final(self) -> Iterator[Record]:
        for word, count in most_frequent(self.best, self.size):
            yield word, b"%d" % count


def _sums(values: Iterable[bytes]) -> tuple[Dictionary, npt.NDArray[np.int64]]:
    """Return the distinct words of the blocks, and the sum of the counts of each word."""
    words = Dictionary()
    counts = np.zeros(0, np.int64)
    for value in values:
        block = arrays_of(value)
        ids = words.add(block["words"].tobytes())
        if len(counts) < len(words):
            counts = np.concatenate((counts, np.zeros(2 * len(words) - len(counts), np.int64)))
        counts[ids] += block["counts"]  # `+=` is safe, because a block has each word once
    return words, counts[: len(words)]


if __name__ == "__main__":
    run_as_script(CountWords)
