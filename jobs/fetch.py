"""The job that brings the shingles of texts to the texts that they are to be compared with.

In: the pairs of `sketch`. Out: blocks by the part of the second text, `part<TAB>block`, and tallies. A block has some
texts' `numbers` and their sets of shingles, `shingles` and `ends` (`PartTexts.sets`), and pairs: `first` (n,) counts
these texts from 0, `second` (n,) has numbers.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from pybase64 import b64decode, b64encode

from corpus.reading.tally import Tally, is_tally_key
from jobs.arrays import pack_arrays, unpack_arrays
from jobs.entry_points import run_as_script
from jobs.job import ReducingJob
from jobs.records import Record, part_name
from jobs.shingles import Numbers, PartTexts, parts_of

_BLOCK_PAIRS = 1 << 11
_MOST_PAIRS = 1 << 21


class Fetch(ReducingJob):
    """Map: emit unchanged. Reduce: the different pairs of a part, with the shingles of the part's texts."""

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--distinct", metavar="FOLDER", help="the side files of jobs.deduplicate")

    def reducer(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        tally = Tally()
        if is_tally_key(key):
            tally.add_records(key, values)
        else:
            pairs = _different(values)
            tally.counts["near.compared"] = len(pairs)
            texts, parts = PartTexts(self.options.distinct, key.decode()), parts_of(pairs[:, 1])
            for part in np.unique(parts).tolist():
                chosen = pairs[parts == part]
                for begin in range(0, len(chosen), _BLOCK_PAIRS):
                    these = chosen[begin : begin + _BLOCK_PAIRS]
                    numbers, first = np.unique(these[:, 0], return_inverse=True)
                    shingles, ends = texts.sets(numbers)
                    block = {
                        "numbers": numbers,
                        "shingles": shingles,
                        "ends": ends,
                        "first": first.astype(np.int64),
                        "second": these[:, 1],
                    }
                    yield part_name(part).encode(), b64encode(b"".join(pack_arrays(block)))
        yield from tally.records()


def _different(values: Iterable[bytes]) -> Numbers:
    """(n, 2): the pairs of all blocks, each once, in order."""
    pairs = np.empty((0, 2), np.uint64)
    waiting, count = [pairs], 0
    for value in values:
        block = unpack_arrays(b64decode(value, validate=True))
        waiting.append(np.stack((block["first"], block["second"]), axis=1))
        count += len(block["first"])
        if count > _MOST_PAIRS:
            pairs = np.unique(np.concatenate(waiting), axis=0)
            waiting, count = [pairs], 0
    return np.unique(np.concatenate(waiting), axis=0)


if __name__ == "__main__":
    run_as_script(Fetch)
