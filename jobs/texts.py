"""First step: reduces raw reviews to distinct texts, by rules 1 to 8 of docs/reference/dataset.md except number 6."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np

from corpus.reading.formats import LabelEncoder
from corpus.reading.ranges import read_batches
from corpus.reading.sources import Range
from corpus.reading.tally import Tally
from jobs.collector import Collector
from jobs.part_reducer import DistinctTexts, PartReducer
from jobs.plan import Plan
from jobs.records import Arrays

# Each part has one block of word counts for each bucket of words.
_MAX_BUCKET_BITS = 8


def read_texts(
    ranges: Iterable[Range], plan: Plan, tally: Tally, report: Callable[[int], None]
) -> Iterator[tuple[int, Arrays]]:
    """Map: read the reviews of a task, split them into words, and combine equal texts.

    Yields blocks of texts, each with the number of its part, and adds the counts of the task to `tally`. `report` is
    called with the number of decompressed bytes of each batch.
    """
    encoder = LabelEncoder(plan.settings)
    collector = Collector(plan.stopwords, plan.part_bits, plan.settings)
    for part in ranges:
        for batch in read_batches(part, encoder, tally):
            collector.add(batch.texts, batch.codes, part.test)
            report(batch.raw_bytes)
            if collector.full:
                yield from collector.blocks()
    yield from collector.blocks()
    tally.counts.update(collector.counts)


def unite_texts(blocks: Iterable[Arrays], plan: Plan) -> DistinctTexts:
    """Reduce: return the distinct texts of one part, from all of its blocks."""
    part = PartReducer(plan.settings)
    for block in blocks:
        part.add(block)
    return part.unite()


def count_words(texts: DistinctTexts, plan: Plan) -> Iterator[tuple[int, Arrays]]:
    """Yield the word counts of a part, in blocks with `words`, separated by spaces, and `counts`. Each block has the
    number of its bucket.

    A word's hash determines its bucket, so that all counts of a word are in the same bucket.
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
        yield (
            bucket,
            {
                "words": np.frombuffer(letters, np.uint8),
                "counts": counts.astype(np.uint32) if counts.max() < 1 << 32 else counts,
            },
        )
