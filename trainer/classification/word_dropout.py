"""Dropout of words: each time that a text is seen it loses other words, by seed, step and row.

The masks are from a pool that is drawn once, like the masks of values (trainer/computing/dropout.py).
"""

import numpy as np
import torch
from shoal_balance import IntArray
from torch import Tensor

from trainer.computing.dropout import POOL
from trainer.devices import moved_to

FEWEST_WORDS = 4
"""The least words that a text keeps, because short texts must not lose their meaning: with five words on average, one
half of texts with two words would be left with one."""
_MOST_PLACES = 1 << 24
"""The largest size of all masks of words together. There are fewer masks if rows are very long."""


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
        places = np.argsort(~kept, axis=1, kind="stable").astype(np.int32)  # (_pool, longest), those kept first
        self._places = torch.from_numpy(places)

    def lengths(self, lengths: IntArray, keys: IntArray) -> IntArray:
        """(rows,): the number of words that rows of `lengths` (rows,), each at least 1, keep under the masks of `keys`
        (rows,)."""
        return np.maximum(self._before[keys % self._pool, lengths], np.minimum(lengths, FEWEST_WORDS)).astype(np.int64)

    def places(self, lengths: IntArray, keys: IntArray, kept: IntArray, device: torch.device) -> Tensor:
        """(rows, the most of `kept`) int32 on `device`: the positions of the `kept` (rows,) words in rows of `lengths`
        (rows,), ascending; entries behind them are any positions of a row.

        The host computes only rows that would keep too few words: the positions of all are megabytes a step.
        """
        if self._places.device != device:
            self._places = self._places.to(device)
        keys = keys % self._pool
        places = self._places[:, : int(kept.max())][moved_to(keys, device)]
        few = np.flatnonzero(self._before[keys, lengths] < kept)
        numbered = np.arange(min(FEWEST_WORDS, places.shape[1]))
        some = (keys[few, None] + numbered) % lengths[few, None]  # neighbours, from any word on
        some[numbered >= kept[few, None]] = self._places.shape[1] - 1
        some = np.sort(some, axis=1).astype(np.int32)
        places[:, : len(numbered)].index_copy_(0, moved_to(few, device), moved_to(some, device))
        return places
