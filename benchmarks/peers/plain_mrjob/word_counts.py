"""Distinct texts to word counts."""

from collections import Counter
from collections.abc import Iterator

from mrjob.job import MRJob
from mrjob.protocol import BytesProtocol

from corpus.dataset_settings import Settings
from corpus.rules import in_test_set

Pair = tuple[bytes, bytes]

_COMBINED_WORDS = 500_000


class WordCounts(MRJob):
    """Distinct training texts to the number of times that a word occurs in them."""

    INPUT_PROTOCOL = INTERNAL_PROTOCOL = OUTPUT_PROTOCOL = BytesProtocol

    def mapper_init(self) -> None:
        self.frequencies: Counter[bytes] = Counter()

    def mapper(self, key: bytes, value: bytes) -> Iterator[Pair]:
        if not in_test_set(bytes.fromhex(key.decode()), Settings().test_share):
            self.frequencies.update(value.partition(b"\t")[2].split(b" "))
        if len(self.frequencies) > _COMBINED_WORDS:
            yield from self.mapper_final()

    def mapper_final(self) -> Iterator[Pair]:
        for word, number in self.frequencies.items():
            yield word, b"%d" % number
        self.frequencies.clear()

    def reducer(self, word: bytes, values: Iterator[bytes]) -> Iterator[Pair]:
        yield word, b"%d" % sum(map(int, values))


if __name__ == "__main__":
    WordCounts.run()
