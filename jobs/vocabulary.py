"""Job that counts the words of reviews.

python -m jobs.vocabulary reviews/*.json.gz
"""

from collections.abc import Iterable, Iterator

from mrjob.step import MRStep

from corpus.reading.storage import writable
from corpus.reading.tally import Tally, is_tally_key
from jobs.choose import choose_vocabulary, read_candidates
from jobs.job import ONE_REDUCER, ReviewsJob, run_as_script
from jobs.records import Record, arrays_of, block_of, gathered, pack_arrays, read_records, texts_url
from jobs.texts import count_words, unite_texts
from jobs.words import WordCounts


class Vocabulary(ReviewsJob):
    """Prints the words of the vocabulary with their counts: word<TAB>count, the most frequent word first.

    Counts are those in the distinct texts of the training set."""

    keeps_texts = False
    """Whether the first step writes the distinct texts for later steps."""

    def steps(self) -> list[MRStep]:
        return [
            *self.counting(),
            MRStep(reducer=self.print_vocabulary, jobconf=ONE_REDUCER),
        ]

    def counting(self) -> list[MRStep]:
        """Return the steps from the reviews to the candidates for the vocabulary."""
        return [
            MRStep(mapper=self.read_reviews, reducer=self.unite),
            MRStep(reducer_init=self.start_counts, reducer=self.add_counts, reducer_final=self.candidates),
        ]

    def unite(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        """Reducer: unite the texts of a part, and count their words."""
        if is_tally_key(key):
            yield from Tally.sum_records(key, values)
            return
        texts = unite_texts(map(arrays_of, values), self.plan)
        if self.keeps_texts:
            with writable(texts_url(self.plan.texts, key.decode())) as path, path.open("wb") as file:
                file.writelines(pack_arrays(texts.rows))
        for bucket, counts in count_words(texts, self.plan):
            yield b"w%04x" % bucket, block_of(counts)
        tally = Tally()
        tally.counts.update(texts.counts)
        yield from tally.records()

    def start_counts(self) -> None:
        self.counts = WordCounts(self.plan.settings.vocabulary_size)

    def add_counts(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        """Reducer: add up the counts of a bucket of words."""
        if is_tally_key(key):
            yield from gathered(Tally.sum_records(key, values))
        else:
            self.counts.add(map(arrays_of, values))

    def candidates(self) -> Iterator[Record]:
        """Reducer: yield the most frequent words of all buckets of this reducer."""
        yield from gathered((word, b"%d" % count) for word, count in self.counts.candidates)

    def print_vocabulary(self, _: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        """Reducer: yield the words of the vocabulary."""
        tally = Tally()
        choice = choose_vocabulary(read_candidates(read_records(values), self.plan, tally), self.plan, tally)
        for word, count in zip(choice.words, choice.counts, strict=True):
            yield word.encode(), b"%d" % count


if __name__ == "__main__":
    run_as_script(Vocabulary)
