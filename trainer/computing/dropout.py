"""Dropout by seed, step and row: a row's mask is the same whichever rank computes it, and beside whichever rows.

Every place of dropout has a pool of masks, drawn once, and a hash of seed, step and row says which of them a row gets:
no random numbers are drawn in a step. The easy mistake is torch's own dropout: it draws from the rank's generator in
the order of the rank's rows, so that the learning curve depends on how the rows were split.

Values are dropped by making them 0. Whole words are dropped by leaving them out of a row of text
(classification/word_dropout.py).
"""

import numpy as np
import torch
from torch import Tensor, nn

from trainer.order import IntArray

POOL = 1 << 12
"""Masks of a place. Two rows share one in every so many steps, which no row can make use of."""
_STRIDE = 2531  # odd, so that all masks come before one comes again, and far from those of a neighbour


def keys(seed: int, step: int, rows: IntArray) -> IntArray:
    """(n,): for each of `rows` (n,) the number of its masks, from 0 to POOL - 1, at a step of the run."""
    start = np.random.SeedSequence((seed, step)).generate_state(1, np.uint64)[0]
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start  # SplitMix64 (Steele et al. 2014)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    numbers: IntArray = (mixed >> np.uint64(40)).astype(np.int64) % POOL
    return numbers


class Dropout(nn.Module):
    """Drops a share of the values of each row, and scales up the others."""

    pool: Tensor

    def __init__(self, share: float, width: int) -> None:
        """`share` of `width` values a row. The masks come from torch's generator, so they are those of its seed."""
        super().__init__()
        self._share = share
        self.register_buffer("pool", (torch.rand(POOL, width) >= share).to(torch.uint8), persistent=False)

    def forward(self, values: Tensor, keys: Tensor | None) -> Tensor:
        """`values` (..., rows, width) with the mask that `keys` (rows,) name; as they are where that is None."""
        if keys is None or not self._share:
            return values
        return values * self._mask(keys, values.dtype)

    def at_each_time(self, values: Tensor, keys: Tensor | None) -> Tensor:
        """`values` (times, rows, width) with another mask at each time."""
        if keys is None or not self._share:
            return values
        times = torch.arange(len(values), device=values.device)[:, None]
        return values * self._mask((keys + _STRIDE * times) % POOL, values.dtype)

    def _mask(self, keys: Tensor, dtype: torch.dtype) -> Tensor:
        return self.pool[keys].to(dtype) * (1.0 / (1.0 - self._share))
