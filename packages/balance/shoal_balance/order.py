"""Order of the training rows: global batch k of epoch e is a pure function of (rows, seed, epoch, k).

The training rows form blocks. An epoch takes the blocks in a random order and shuffles the rows inside a window of
consecutive blocks. So a streaming reader needs only one window in memory, and sees the same order as a reader that
holds all rows.

The order must never depend on the number of ranks. Every rank computes the row numbers of the whole global batch and
takes its own part of them (balancers.py).
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shoal_balance.split import IntArray

BLOCK_ROWS = 4096
WINDOW_BLOCKS = 64

_OF_BLOCKS = 0
_OF_ROWS = 1


@dataclass(frozen=True, kw_only=True)
class BatchOrder:
    """Order of `rows` training rows, numbered from 0, in the global batches of every epoch."""

    rows: int
    global_batch: int
    seed: int
    block_rows: int = BLOCK_ROWS
    window_blocks: int = WINDOW_BLOCKS

    @property
    def steps(self) -> int:
        """Number of global batches per epoch. The last batch may have fewer rows."""
        return steps_per_epoch(self.rows, self.global_batch)

    def size(self, step: int) -> int:
        """Return the number of rows of global batch `step`, counted from 0. Raises IndexError if it is out of range."""
        if not 0 <= step < self.steps:
            raise IndexError(f"step {step} is out of range [0, {self.steps})")
        return min(self.global_batch, self.rows - step * self.global_batch)

    def batch(self, epoch: int, step: int) -> IntArray:
        """Return the row numbers, (size(step),), of global batch `step` of `epoch`, both counted from 0.

        To avoid a copy in each step, the result may be a read-only view of a window (two megabytes).
        """
        start = step * self.global_batch
        stop = start + self.size(step)
        begins = _window_bounds(self.rows, self.seed, epoch, self.block_rows, self.window_blocks)  # (windows + 1,)
        first, last = bisect_right(begins, start) - 1, bisect_left(begins, stop)
        parts = []
        for window in range(first, last):
            rows = _window_rows(self.rows, self.seed, epoch, window, self.block_rows, self.window_blocks)
            parts.append(rows[max(0, start - begins[window]) : stop - begins[window]])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)  # (stop - start,)


def steps_per_epoch(rows: int, global_batch: int) -> int:
    """Return the number of global batches that together contain every row exactly once."""
    return -(-rows // global_batch)


@lru_cache(maxsize=2)
def _block_order(rows: int, seed: int, epoch: int, block_rows: int) -> IntArray:
    """Return the block numbers, (blocks,), in the random order of this epoch."""
    return np.random.default_rng((seed, epoch, _OF_BLOCKS)).permutation(-(-rows // block_rows))


@lru_cache(maxsize=2)
def _window_bounds(rows: int, seed: int, epoch: int, block_rows: int, window_blocks: int) -> list[int]:
    """Return the start of each window in the epoch, and the end of the last window, (windows + 1,).

    The last block may have fewer rows, and any window may contain it.
    """
    blocks = _block_order(rows, seed, epoch, block_rows)
    sizes = np.minimum(block_rows, rows - blocks * block_rows)  # (blocks,)
    ends = np.concatenate(([0], np.cumsum(sizes)))  # (blocks + 1,)
    bounds: list[int] = np.append(ends[:-1:window_blocks], rows).tolist()
    return bounds


@lru_cache(maxsize=2)
def _window_rows(rows: int, seed: int, epoch: int, window: int, block_rows: int, window_blocks: int) -> IntArray:
    """Return the shuffled row numbers of a window, (rows of the window,).

    The array is read-only, because batches are views of it.
    """
    blocks = _block_order(rows, seed, epoch, block_rows)[window * window_blocks : (window + 1) * window_blocks]
    numbers = blocks[:, None] * block_rows + np.arange(block_rows)  # (window_blocks, block_rows)
    inside = numbers[numbers < rows]  # (rows of the window,)
    shuffled = np.random.default_rng((seed, epoch, _OF_ROWS, window)).permutation(inside)
    shuffled.flags.writeable = False
    return shuffled
