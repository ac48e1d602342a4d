"""Job that reduces raw reviews to distinct texts. It applies rules 1 to 8 of docs/reference/dataset.md except the
vocabulary.

Input: one task (`corpus.reading.ranges`) per line. The mapper itself reads the byte ranges that its task names. Output:
one side file for each part, in `--distinct` (a folder or s3://...), and records. The records are tallies, and blocks of
word counts: one block for each bucket of hashes.

The name of a side file must depend only on its part, not on the task, because a retried task must write the same bytes
to the same address.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from mrjob.protocol import BytesValueProtocol

from corpus.reading.formats import LabelEncoder
from corpus.reading.ranges import read_batches, read_task
from corpus.reading.storage import writable
from corpus.reading.tally import Tally, is_tally_key
from jobs.collector import Collector
from jobs.job import PreprocessingJob, run_as_script
from jobs.job_settings import read_stopwords
from jobs.part_reducer import DistinctTexts, PartReducer
from jobs.records import Arrays, Record, block_of, pack_arrays, side_url

# Each part emits one record for each bucket of words.
_MAX_BUCKET_BITS = 8


class Deduplicate(PreprocessingJob):
    """Map: read reviews, split them into words, compute digests, and combine equal texts. Reduce: write a part's
    distinct texts, and count their words."""

    INPUT_PROTOCOL = BytesValueProtocol

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--distinct", metavar="FOLDER", help="folder or s3://... for side files")
        self.add_passthru_arg("--part-bits", type=int, default=3, help="binary logarithm of the number of parts")

    def mapper(self, _: None, task: bytes) -> Iterator[Record]:
        settings = self.settings()
        encoder = LabelEncoder(settings)
        stopwords = sorted(read_stopwords(settings.stopwords, settings.words))
        collector = Collector(stopwords, self.options.part_bits, settings.words)
        tally = Tally()
        for part in read_task(task):
            for batch in read_batches(part, encoder, tally):
                collector.add(batch.texts, batch.codes, part.test)
                self.report_bytes(batch.raw_bytes)
                if collector.full:
                    yield from collector.blocks()
        yield from collector.blocks()
        self.report_bytes(0, at_once=True)
        tally.counts.update(collector.counts)
        yield from tally.records()

    def reducer(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        tally = Tally()
        if is_tally_key(key):
            tally.add_records(key, values)
        else:
            part = PartReducer(self.settings())
            for value in values:
                part.add(value)
            distinct = part.unite()
            with writable(side_url(self.options.distinct, key.decode())) as path, path.open("wb") as file:
                file.writelines(pack_arrays(distinct.rows))
            yield from _word_counts(distinct, 1 << min(self.options.part_bits, _MAX_BUCKET_BITS))
            tally.counts.update(distinct.counts)
        yield from tally.records()


def _word_counts(distinct: DistinctTexts, buckets: int) -> Iterator[Record]:
    """Yield the word counts of a part as records. The key is a bucket number; the block has `words`, separated by
    spaces, and `counts`.

    A word's hash determines its bucket, so that all counts of a word are in the same bucket.
    """
    bucket_of = distinct.dictionary.word_hashes(distinct.words) % np.uint64(buckets)
    order = np.argsort(bucket_of, kind="stable")
    bounds = np.searchsorted(bucket_of[order], np.arange(buckets + 1, dtype=np.uint64)).tolist()
    for bucket, (begin, end) in enumerate(pairwise(bounds)):
        if begin == end:
            continue
        chosen = order[begin:end]
        letters = distinct.dictionary.join_words(distinct.words[chosen])
        counts = distinct.frequencies[chosen]
        block: Arrays = {
            "words": np.frombuffer(letters, np.uint8),
            "counts": counts.astype(np.uint32) if counts.max() < 1 << 32 else counts,
        }
        yield b"w%04x" % bucket, block_of(block)


if __name__ == "__main__":
    run_as_script(Deduplicate)
