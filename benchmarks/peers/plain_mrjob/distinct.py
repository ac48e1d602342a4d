"""Lines to distinct texts."""

from collections import Counter
from collections.abc import Iterator

from mrjob.job import MRJob
from mrjob.protocol import BytesProtocol, BytesValueProtocol

from benchmarks.peers.contract import is_blank, review
from corpus.rules import modal_rating
from corpus.text import digest, load_stopwords, words

Pair = tuple[bytes, bytes]


class Distinct(MRJob):
    """Lines to distinct texts: digest to modal rating and kept words."""

    INPUT_PROTOCOL = BytesValueProtocol
    INTERNAL_PROTOCOL = OUTPUT_PROTOCOL = BytesProtocol

    def mapper_init(self) -> None:
        self.stopwords = load_stopwords()
        self.counts: Counter[str] = Counter()

    def mapper(self, _: None, line: bytes) -> Iterator[Pair]:
        if is_blank(line):
            return
        self.counts["lines"] += 1
        found = review(line)
        if found is None:
            self.counts["malformed"] += 1
            return
        text, rating = found
        cleaned = words(text)
        if not cleaned:
            self.counts["empty"] += 1
            return
        self.counts["texts"] += 1
        kept = " ".join(word for word in cleaned if word not in self.stopwords)
        yield digest(cleaned).hex().encode(), b"%d\t%s" % (rating, kept.encode())

    def mapper_final(self) -> None:
        self._say_counts()

    def reducer_init(self) -> None:
        self.counts = Counter()

    def reducer(self, key: bytes, values: Iterator[bytes]) -> Iterator[Pair]:
        ratings: Counter[int] = Counter()
        for value in values:
            rating, _, kept = value.partition(b"\t")
            ratings[int(rating)] += 1
        self.counts["distinct"] += 1
        self.counts["conflicting"] += len(ratings) > 1
        self.counts["wordless"] += not kept
        if kept:
            yield key, b"%d\t%s" % (modal_rating(ratings), kept)

    def reducer_final(self) -> None:
        self._say_counts()

    def _say_counts(self) -> None:
        for name, number in self.counts.items():
            self.increment_counter("counts", name, int(number))


if __name__ == "__main__":
    Distinct.run()
