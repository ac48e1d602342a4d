"""Job that prints the distinct texts of reviews.

python -m jobs.deduplicate reviews.json.gz
"""

from collections.abc import Iterable, Iterator

from mrjob.step import MRStep

from corpus.reading.acceptance import check_input
from corpus.reading.tally import Tally, is_tally_key
from jobs.job import ReviewsJob, run_as_script
from jobs.records import GATHERED, Record, arrays_of, gathered, read_records
from jobs.texts import unite_texts


class Deduplicate(ReviewsJob):
    """Prints the distinct texts, a line each: rating<TAB>words. One more line has the counts: :counts<TAB>JSON.

    A rating is the most frequent one of the text's duplicates; with labels, it is the number of the label."""

    def steps(self) -> list[MRStep]:
        return [MRStep(mapper=self.read, reducer=self.print_texts)]

    def read(self, _: None, task: bytes) -> Iterator[Record]:
        """Mapper: read the reviews of a task, and give all tallies to one reducer."""
        for record in self.read_reviews(None, task):
            yield from gathered([record]) if is_tally_key(record[0]) else [record]

    def print_texts(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        """Reducer: yield the texts of a part, or check the tallies and yield the counts."""
        if key == GATHERED:
            tally = Tally()
            for name, value in read_records(values):
                tally.add_records(name, [value])
            check_input(tally, self.plan.max_malformed, self.plan.settings)
            yield tally.records()[0]
            return
        rows = unite_texts(map(arrays_of, values), self.plan).rows
        words = rows["words"].tobytes().split(b" ")
        ends = rows["lengths"].cumsum()
        for text, code, times in zip(rows["text"], rows["code"], rows["times"], strict=True):
            ids = rows["ids"][ends[text] - rows["lengths"][text] : ends[text]]
            for _ in range(times):
                yield b"%d" % code, b" ".join(words[each] for each in ids)


if __name__ == "__main__":
    run_as_script(Deduplicate)
