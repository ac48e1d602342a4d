"""First step: reduces raw reviews to distinct texts, by rules 1 to 8 of docs/reference/dataset.md except number 6.

The name of a file of texts must depend only on its part, not on the task. A retried task then writes the same bytes to
the same address.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np

from corpus.reading.formats import LabelEncoder
from corpus.reading.ranges import read_batches, read_task
from corpus.reading.storage import writable
from corpus.reading.tally import Tally
from jobs.collector import Collector
from jobs.part_reducer import DistinctTexts, PartReducer
from jobs.plan import Plan
from jobs.records import Arrays, Record, block_of, pack_arrays, texts_url

# Each part emits one record for each bucket of words.
_MAX_BUCKET_BITS = 8


def read_texts(task: bytes, plan: Plan, report: Callable[..., None]) -> Iterator[Record]:
    """Map: read the reviews of a task, split them into words, and combine equal texts. Yield blocks and tallies."""
    settings = plan.settings
    encoder = LabelEncoder(settings)
    collector = Collector(plan.stopwords, plan.part_bits, settings.words)
    tally = Tally()
    for part in read_task(task):
        for batch in read_batches(part, encoder, tally):
            collector.add(batch.texts, batch.codes, part.test)
            report(batch.raw_bytes)
            if collector.full:
                yield from collector.blocks()
    yield from collector.blocks()
    report(0, at_once=True)
    tally.counts.update(collector.counts)
    yield from tally.records()


def unite_texts(blocks: Iterable[bytes], plan: Plan) -> DistinctTexts:
    """Return the distinct texts of one part, from all of its blocks."""
    part = PartReducer(plan.settings)
    for block in blocks:
        part.add(block)
    return part.unite()


def write_texts(part: str, texts: DistinctTexts, plan: Plan) -> None:
    with writable(texts_url(plan.texts, part)) as path, path.open("wb") as file:
        file.writelines(pack_arrays(texts.rows))


def count_words(texts: DistinctTexts, plan: Plan) -> Iterator[Record]:
    """Yield the word counts of a part, and its tally.

    The key of the word counts is a bucket number; the block has `words`, separated by spaces, and `counts`. A word's
    hash determines its bucket, so that all counts of a word are in the same bucket.
    """
    buckets = 1 << min(plan.part_bits, _MAX_BUCKET_BITS)
    bucket_of = texts.dictionary.word_hashes(texts.words) % np.uint64(buckets)
    order = np.argsort(bucket_of, kind="stable")
    bounds = np.searchsorted(bucket_of[order], np.arange(buckets + 1, dtype=np.uint64)).tolist()
    for bucket, (begin, end) in enumerate(pairwise(bounds)):
        if begin == end:
            continue
        chosen = order[begin:end]
        letters = texts.dictionary.join_words(texts.words[chosen])
        counts = texts.frequencies[chosen]
        block: Arrays = {
            "words": np.frombuffer(letters, np.uint8),
            "counts": counts.astype(np.uint32) if counts.max() < 1 << 32 else counts,
        }
        yield b"w%04x" % bucket, block_of(block)
    tally = Tally()
    tally.counts.update(texts.counts)
    yield from tally.records()
