"""Dropout by seed, step and row: a row's mask depends neither on its rank nor on the other rows of the batch.

Each dropout layer has a pool of masks, drawn once. A hash of seed, step and row selects a row's mask, so no random
numbers are drawn in a step. Do not use torch's own dropout: it draws from the rank's generator in the order of the
rank's rows, so the learning curve would depend on the split.

These masks set values to 0. Dropped words are removed from a text (classification/rows.py).
"""

import numpy as np
import numpy.typing as npt
import torch
from shoal_balance import IntArray
from torch import Tensor, nn

POOL = 1 << 12
"""Masks per layer. Two given rows share a mask once in this number of steps, which no row can exploit."""
_STRIDE = 2531  # odd, so that all masks come before one repeats, and far from those of adjacent keys


def keys(seed: int, step: int, rows: IntArray) -> IntArray:
    """Return the mask index (n,) of each of `rows` (n,), from 0 to POOL - 1, at a step of the run."""
    numbers: IntArray = (hashes(seed, step, rows) >> np.uint64(40)).astype(np.int64) % POOL
    return numbers


def hashes(seed: int, step: int, rows: IntArray) -> npt.NDArray[np.uint64]:
    """Return a hash (n,) uint64 of seed, step and row for each of `rows` (n,)."""
    start = np.random.SeedSequence((seed, step)).generate_state(1, np.uint64)[0]
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start  # SplitMix64 (Steele et al. 2014)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: npt.NDArray[np.uint64] = mixed
    return found


def drops(model: nn.Module) -> bool:
    """Return whether the model drops any values, so that its rows need keys."""
    return any(isinstance(module, Dropout) and module.share > 0 for module in model.modules())


class Dropout(nn.Module):
    """Drops a share of the values of each row, and scales up the others."""

    pool: Tensor

    def __init__(self, share: float, width: int) -> None:
        """Drop `share` of `width` values per row. The masks are drawn from torch's generator, and so depend on its
        seed."""
        super().__init__()
        self.share = share
        """Share of dropped values."""
        self.register_buffer("pool", (torch.rand(POOL, width) >= share).to(torch.uint8), persistent=False)

    def forward(self, values: Tensor, keys: Tensor | None) -> Tensor:
        """Apply the masks of `keys` (rows,) to `values` (..., rows, width). `keys=None` returns the values
        unchanged."""
        if keys is None or not self.share:
            return values
        return values * self._mask(keys, values.dtype)

    def at_each_time(self, values: Tensor, keys: Tensor | None) -> Tensor:
        """Apply masks to `values` (times, rows, width), a different one at each time. See `forward`."""
        if keys is None or not self.share:
            return values
        times = torch.arange(len(values), device=values.device)[:, None]
        return values * self._mask((keys + _STRIDE * times) % POOL, values.dtype)

    def _mask(self, keys: Tensor, dtype: torch.dtype) -> Tensor:
        return self.pool[keys].to(dtype) * (1.0 / (1.0 - self.share))
