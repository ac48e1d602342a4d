"""Distinct texts to the candidates for the vocabulary, with their frequencies.

In: the output of `deduplicate`. Out: the most frequent kept words of each reducer, `word<TAB>count`, and
the count records. As each reducer sees all of a word's occurrences, the overall choice (`choose`) needs no
more than these.

The easy mistake is to count what a row holds: the vocabulary counts all words of a training text, before
cutting to length, and none of the test set.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator

from corpus.text import in_test_set, load_stopwords
from jobs.job import Job
from jobs.records import COUNTS_KEY, Record, counts_record, read_distinct_text, sum_counts
from jobs.settings import read_settings
from jobs.task import run_as_script

_COMBINE_WORDS = 500_000


class CountWords(Job):
    """Map: count the kept words of training texts. Reduce: add up, keep the most frequent."""

    def mapper_init(self) -> None:
        self.settings = read_settings(self.options)
        self.stopwords = load_stopwords(self.settings.stopwords)
        self.frequencies: Counter[str] = Counter()

    def mapper(self, key: bytes, value: bytes) -> Iterator[Record]:
        if key == COUNTS_KEY:
            yield key, value
            return
        self.report(len(value))
        text = read_distinct_text(key, value)
        if in_test_set(bytes.fromhex(text.digest), self.settings.test_share):
            return
        self.frequencies.update(word for word in text.cleaned.split(" ") if word not in self.stopwords)
        if len(self.frequencies) > _COMBINE_WORDS:
            yield from self._combined()

    def mapper_final(self) -> Iterator[Record]:
        self.report(0, at_once=True)
        yield from self._combined()

    def reducer_init(self) -> None:
        self.size = read_settings(self.options).vocabulary_size
        self.candidates: list[tuple[str, int]] = []

    def reducer(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        if key == COUNTS_KEY:
            yield counts_record(sum_counts(values))
            return
        self.candidates.append((key.decode(), sum(map(int, values))))
        if len(self.candidates) > 4 * self.size + _COMBINE_WORDS:
            self.candidates = self._best()

    def reducer_final(self) -> Iterator[Record]:
        for word, count in self._best():
            yield word.encode(), b"%d" % count

    def _best(self) -> list[tuple[str, int]]:
        return heapq.nsmallest(self.size, self.candidates, key=lambda item: (-item[1], item[0]))

    def _combined(self) -> Iterator[Record]:
        for word, count in self.frequencies.items():
            yield word.encode(), b"%d" % count
        self.frequencies.clear()


if __name__ == "__main__":
    run_as_script(CountWords)
