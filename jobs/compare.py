"""The job that computes the Jaccard index of pairs of texts, and keeps those of near-duplicates.

In: the blocks of `fetch`. Out: `:near<TAB>first, second`, the numbers of the texts of pairs with an index of NEAR
and more; and tallies.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from pybase64 import b64decode, b64encode

from corpus.dataset_settings import NEAR
from corpus.reading.tally import Tally, is_tally_key
from jobs.arrays import pack_arrays, unpack_arrays
from jobs.entry_points import run_as_script
from jobs.job import ReducingJob
from jobs.near_texts import NEAR_KEY
from jobs.records import Record
from jobs.shingles import PartTexts, jaccard_indices


class Compare(ReducingJob):
    """Map: emit unchanged. Reduce: compare the texts of a part with those that were brought."""

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--distinct", metavar="FOLDER", help="the side files of jobs.deduplicate")

    def reducer(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        tally = Tally()
        if is_tally_key(key):
            tally.add_records(key, values)
        else:
            texts = PartTexts(self.options.distinct, key.decode())
            for value in values:
                block = unpack_arrays(b64decode(value, validate=True))
                second, place = np.unique(block["second"], return_inverse=True)
                sets = block["shingles"], block["ends"]
                near = jaccard_indices(sets, block["first"], texts.sets(second), place.astype(np.int64)) >= NEAR
                tally.counts["near.pairs"] += int(near.sum())
                if near.any():
                    pairs = {"first": block["numbers"][block["first"][near]], "second": block["second"][near]}
                    yield NEAR_KEY, b64encode(b"".join(pack_arrays(pairs)))
        yield from tally.records()


if __name__ == "__main__":
    run_as_script(Compare)
