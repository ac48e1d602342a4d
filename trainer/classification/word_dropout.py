"""Dropout of words: each time that a text is seen it loses other words, by seed, step and row.

The masks are from a pool that is drawn once, like the masks of values (trainer/computing/dropout.py).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainer.computing.dropout import POOL
from trainer.order import IntArray

FEWEST_WORDS = 4
"""The least words that a text keeps, because short texts must not lose their meaning: with five words on average, one
half of texts with two words would be left with one."""
_MOST_PLACES = 1 << 24
"""The largest size of all masks of words together. There are fewer masks if rows are very long."""


class KeptWords(NamedTuple):
    """The words that rows keep: `lengths` (rows,), and `places` (rows, at least the largest of `lengths`), the
    positions of the kept words in their row, ascending; entries behind a row's length are undefined."""

    lengths: IntArray
    places: npt.NDArray[np.int32]


class WordDropout:
    """Drops a share of the words of each row (Iyyer et al. 2015, section 3.1), but keeps at least FEWEST_WORDS, or all
    of a row that has no more: so a text cannot be memorised by a few words that no other has."""

    def __init__(self, share: float, longest: int, seed: int) -> None:
        """Drop `share` of the words of rows of up to `longest` words; equal seeds give the same masks."""
        self._pool = min(POOL, max(1, _MOST_PLACES // longest))
        generator = np.random.default_rng((seed, POOL))
        kept = generator.random((self._pool, longest), dtype=np.float32) >= share
        self._before = np.zeros((self._pool, longest + 1), dtype=np.int32)  # words kept before each place
        np.cumsum(kept, axis=1, out=self._before[:, 1:])
        self._places = np.argsort(~kept, axis=1, kind="stable").astype(np.int32)  # (_pool, longest), those kept first

    def __call__(self, lengths: IntArray, keys: IntArray) -> KeptWords:
        """The words that rows of `lengths` (rows,), each at least 1, keep under the masks of `keys` (rows,)."""
        keys = keys % self._pool
        left = self._before[keys, lengths].astype(np.int64)
        least = np.minimum(lengths, FEWEST_WORDS)
        few = np.flatnonzero(left < least)
        places = self._places[keys, : max(int(left.max()), int(least.max()))]
        left[few] = least[few]
        some = (keys[few, None] + np.arange(places.shape[1])) % lengths[few, None]  # neighbours, from any word on
        some[np.arange(places.shape[1]) >= least[few, None]] = self._places.shape[1] - 1
        places[few] = np.sort(some, axis=1)
        return KeptWords(left, places)
