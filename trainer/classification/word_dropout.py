"""Dropout of words: a row of text is shorter each time that it is seen, by words that go by seed, step and row.

The masks are from a pool that is drawn once, as those of values are (trainer/computing/dropout.py).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainer.computing.dropout import POOL
from trainer.order import IntArray

FEWEST_WORDS = 4
"""Short texts must not lose what they say: of sentences with five words on average, one half of those with two would
be left with one."""
_MOST_PLACES = 1 << 24
"""Of all masks of words, which are fewer where rows are very long."""


class KeptWords(NamedTuple):
    """What is left of rows: `lengths` (rows,), and `places` (rows, at least the largest of `lengths`), where in its row
    each word that is left stood, in their order; what is behind a row's length says nothing."""

    lengths: IntArray
    places: npt.NDArray[np.int32]


class WordDropout:
    """Leaves a share of the words out of each row (Iyyer et al. 2015, section 3.1), but FEWEST_WORDS in it, or all of a
    row that has no more: no text can be learnt by heart by a few words that no other has."""

    def __init__(self, share: float, longest: int, seed: int) -> None:
        """`share` of the words of rows of up to `longest`, the same masks for equal seeds."""
        self._pool = min(POOL, max(1, _MOST_PLACES // longest))
        generator = np.random.default_rng((seed, POOL))
        kept = generator.random((self._pool, longest), dtype=np.float32) >= share
        self._before = np.zeros((self._pool, longest + 1), dtype=np.int32)  # words kept before each place
        np.cumsum(kept, axis=1, out=self._before[:, 1:])
        self._places = np.argsort(~kept, axis=1, kind="stable").astype(np.int32)  # (_pool, longest), those kept first

    def __call__(self, lengths: IntArray, keys: IntArray) -> KeptWords:
        """What the masks that `keys` (rows,) name leave of rows of `lengths` (rows,), of at least 1 word each."""
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
