"""Which rows make up global batch k of epoch e: pure functions of (rows, seed, epoch, k).

The training rows are cut into blocks. An epoch takes the blocks in a random order and shuffles the rows inside a window
of consecutive blocks. So a reader that streams needs only one window in memory, and a reader that holds all rows sees
the same order. The number of ranks must never enter here: every rank computes the whole global batch and takes its own
part of it (balancers.py).
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
    """The order of `rows` training rows (numbered from 0) in every epoch, cut into global batches."""

    rows: int
    global_batch: int
    seed: int
    block_rows: int = BLOCK_ROWS
    window_blocks: int = WINDOW_BLOCKS
    shuffled: bool = True
    """Otherwise every epoch has the rows in their own order."""

    @property
    def steps(self) -> int:
        """Global batches per epoch; the last one may be short."""
        return steps_per_epoch(self.rows, self.global_batch)

    def size(self, step: int) -> int:
        """Rows of global batch `step`, counted from 0."""
        if not 0 <= step < self.steps:
            raise IndexError(f"an epoch has {self.steps} steps, and {step} is none of them")
        return min(self.global_batch, self.rows - step * self.global_batch)

    def batch(self, epoch: int, step: int) -> IntArray:
        """The rows of global batch `step` of `epoch`, both counted from 0: (size(step),), read-only.

        The result is a view of its window, which is two megabytes that no step has to copy.
        """
        start = step * self.global_batch
        stop = start + self.size(step)
        if not self.shuffled:
            return np.arange(start, stop)
        begins = _window_bounds(self.rows, self.seed, epoch, self.block_rows, self.window_blocks)  # (windows + 1,)
        first, last = bisect_right(begins, start) - 1, bisect_left(begins, stop)
        parts = []
        for window in range(first, last):
            rows = _window_rows(self.rows, self.seed, epoch, window, self.block_rows, self.window_blocks)
            parts.append(rows[max(0, start - begins[window]) : stop - begins[window]])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)  # (stop - start,)


def steps_per_epoch(rows: int, global_batch: int) -> int:
    """Global batches that hold every row exactly once."""
    return -(-rows // global_batch)


@lru_cache(maxsize=2)
def _block_order(rows: int, seed: int, epoch: int, block_rows: int) -> IntArray:
    """(blocks,): the blocks in this epoch's order."""
    return np.random.default_rng((seed, epoch, _OF_BLOCKS)).permutation(-(-rows // block_rows))


@lru_cache(maxsize=2)
def _window_bounds(rows: int, seed: int, epoch: int, block_rows: int, window_blocks: int) -> list[int]:
    """(windows + 1,): where each window starts in the epoch. The one short block may be in any of them."""
    blocks = _block_order(rows, seed, epoch, block_rows)
    sizes = np.minimum(block_rows, rows - blocks * block_rows)  # (blocks,)
    ends = np.concatenate(([0], np.cumsum(sizes)))  # (blocks + 1,)
    bounds: list[int] = np.append(ends[:-1:window_blocks], rows).tolist()
    return bounds


@lru_cache(maxsize=2)
def _window_rows(rows: int, seed: int, epoch: int, window: int, block_rows: int, window_blocks: int) -> IntArray:
    """(rows of the window,): its rows, shuffled; read-only, because batches are views of it."""
    blocks = _block_order(rows, seed, epoch, block_rows)[window * window_blocks : (window + 1) * window_blocks]
    numbers = blocks[:, None] * block_rows + np.arange(block_rows)  # (window_blocks, block_rows)
    inside = numbers[numbers < rows]  # (rows of the window,)
    shuffled = np.random.default_rng((seed, epoch, _OF_ROWS, window)).permutation(inside)
    shuffled.flags.writeable = False
    return shuffled
