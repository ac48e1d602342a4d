"""Dropout with masks that depend only on the seed, the step and the row.

A row's mask depends neither on the rank that computes the row, nor on the other rows of the batch. Each dropout layer
draws a pool of masks once. In a step, a hash of seed, step and row number selects one of them for each row, so no
random numbers are drawn. Do not use torch's own dropout: it draws from the rank's generator in the order of the rank's
rows, so the learning curve would depend on the split.

These masks set values of a layer to 0. Word dropout instead removes words from a text (classification/rows.py).
"""

import numpy as np
import numpy.typing as npt
import torch
from shoal_balance import IntArray
from torch import Tensor, nn

POOL = 1 << 12
"""Number of masks per layer. Two given rows have the same mask in only one of `POOL` steps on average."""
_STRIDE = 2531  # odd, so that masks repeat only after POOL times; far from 1, because adjacent keys would share masks


def keys(seed: int, step: int, rows: IntArray) -> IntArray:
    """Return the mask indices (n,), from 0 to POOL - 1, of the row numbers `rows` (n,) at a step of the run."""
    numbers: IntArray = (hashes(seed, step, rows) >> np.uint64(40)).astype(np.int64) % POOL
    return numbers


def hashes(seed: int, step: int, rows: IntArray) -> npt.NDArray[np.uint64]:
    """Return hashes (n,) uint64 of the seed, the step and each of the row numbers `rows` (n,)."""
    start = np.random.SeedSequence((seed, step)).generate_state(1, np.uint64)[0]
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start  # SplitMix64 (Steele et al. 2014)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: npt.NDArray[np.uint64] = mixed
    return result


def drops(model: nn.Module) -> bool:
    """Return whether any dropout layer of the model drops values. If so, `forward` needs the `keys` of rows."""
    return any(isinstance(module, Dropout) and module.share > 0 for module in model.modules())


class Dropout(nn.Module):
    """Layer that sets a share of the values of each row to 0, and scales up the other values."""

    pool: Tensor

    def __init__(self, share: float, width: int) -> None:
        """`share`: the probability that a value is dropped. `width`: the number of values per row.

        The masks are drawn from torch's default generator, so they depend on its seed.
        """
        super().__init__()
        self.share = share
        """Probability that a value is dropped."""
        self.register_buffer("pool", (torch.rand(POOL, width) >= share).to(torch.uint8), persistent=False)

    def forward(self, values: Tensor, keys: Tensor | None) -> Tensor:
        """Apply the masks with the indices `keys` (rows,) to `values` (..., rows, width).

        Without `keys`, return `values` unchanged.
        """
        if keys is None or not self.share:
            return values
        return values * self._mask(keys, values.dtype)

    def at_each_time(self, values: Tensor, keys: Tensor | None) -> Tensor:
        """Like `forward`, mask `values` (times, rows, width), but with a different mask for each row at each time."""
        if keys is None or not self.share:
            return values
        times = torch.arange(len(values), device=values.device)[:, None]
        return values * self._mask((keys + _STRIDE * times) % POOL, values.dtype)

    def _mask(self, keys: Tensor, dtype: torch.dtype) -> Tensor:
        return self.pool[keys].to(dtype) * (1.0 / (1.0 - self.share))
