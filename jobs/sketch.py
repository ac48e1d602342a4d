"""The job that finds pairs of texts that may be near-duplicates: those that share a band of their MinHash signatures.

In: the tasks of `encode`; the mapper itself reads the parts' side files from `--distinct`. Out: pairs in blocks by the
part of the first text, `part<TAB>first, second`, and tallies. Pairs that share several bands come several times.

Do not pair all texts of a bucket: what thousands of texts have in common would make millions of pairs. In a large one
each is paired with the next REACH texts alone, in the order of the digests and so by chance, and the pairs that are
left out are counted. If such texts are near-duplicates, each still has 2 x REACH of them, so that hardly one seems to
have none.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from mrjob.protocol import BytesValueProtocol
from orjson import loads
from pybase64 import b64decode, b64encode

from common.compiled import compiled
from corpus.reading.storage import list_files
from corpus.reading.tally import Tally, is_tally_key
from jobs.arrays import pack_arrays, unpack_arrays
from jobs.entry_points import run_as_script
from jobs.job import PreprocessingJob
from jobs.records import Record, part_name, side_url
from jobs.shingles import IN_TEST, IN_TRAINING, Numbers, PartTexts, parts_of

REACH = 16
# A part has a record for each of these and each band.
_MAX_RANGE_BITS = 8


class Sketch(PreprocessingJob):
    """Map: the bands of a part's texts, by ranges of their hashes. Reduce: pairs of texts in the same bucket."""

    INPUT_PROTOCOL = BytesValueProtocol

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--distinct", metavar="FOLDER", help="the side files of jobs.deduplicate")
        self.add_passthru_arg("--part-bits", type=int, default=3, help="parts are 2 to the power of this")

    def mapper(self, _: None, task: bytes) -> Iterator[Record]:
        bits = min(self.options.part_bits, _MAX_RANGE_BITS)
        bounds = np.arange(1, 1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        side_files, tally = set(list_files(self.options.distinct)), Tally()
        for part in loads(task):
            if side_url(self.options.distinct, part) not in side_files:  # no text has such a digest
                continue
            texts = PartTexts(self.options.distinct, part)
            tally.counts["near.in_both"] += int(np.sum((texts.numbers & (IN_TRAINING | IN_TEST)) == 3))
            for band, hashes in enumerate(texts.bands()):
                order = np.argsort(hashes)
                ends = [*np.searchsorted(hashes[order], bounds).tolist(), len(order)]
                for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
                    if begin < end:
                        chosen = order[begin:end]
                        block = pack_arrays({"bucket": hashes[chosen], "text": texts.numbers[chosen]})
                        yield b"%02x%02x" % (band, number), b64encode(b"".join(block))
            self.report_bytes(texts.bytes, at_once=True)
        yield from tally.records()

    def reducer(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        tally = Tally()
        if is_tally_key(key):
            tally.add_records(key, values)
        else:
            blocks = [unpack_arrays(b64decode(value, validate=True)) for value in values]
            buckets, texts = (np.concatenate([block[name] for block in blocks]) for name in ("bucket", "text"))
            first, second, tally.counts["near.left_out"] = paired(buckets, texts)
            order = np.argsort(first)
            first, second = first[order], second[order]
            parts = parts_of(first)
            for part in np.unique(parts).tolist():
                these = slice(*np.searchsorted(parts, (part, part + 1)).tolist())
                block = pack_arrays({"first": first[these], "second": second[these]})
                yield part_name(part).encode(), b64encode(b"".join(block))
        yield from tally.records()


def paired(buckets: Numbers, texts: Numbers) -> tuple[Numbers, Numbers, int]:
    """The pairs of texts with the same bucket, in each the smaller number first, and how many pairs are left out."""
    order = np.lexsort((texts, buckets))
    buckets, texts = buckets[order], texts[order]
    begins = np.flatnonzero(np.concatenate(([True], buckets[1:] != buckets[:-1])))
    sizes = np.diff(begins, append=len(buckets))
    whole = sizes * (sizes - 1) // 2
    kept = np.minimum(whole, sizes * REACH)
    first, second = np.empty((2, int(kept.sum())), np.uint64)
    _fill_pairs(texts, begins, sizes, first, second)
    return first, second, int((whole - kept).sum())


@compiled
def _fill_pairs(texts, begins, sizes, first, second):  # type: ignore[no-untyped-def]
    out = 0
    for bucket in range(len(begins)):
        begin, size = begins[bucket], sizes[bucket]
        wrapped = size > 2 * REACH + 1
        for one in range(size):
            last = one + REACH if wrapped else size - 1
            for other in range(one + 1, last + 1):
                pair = texts[begin + one], texts[begin + other % size]
                first[out], second[out] = min(pair), max(pair)
                out += 1


if __name__ == "__main__":
    run_as_script(Sketch)
