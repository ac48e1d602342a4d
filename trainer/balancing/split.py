"""How rows are shared out over ranks: pure arithmetic, the same on every rank.

Ranks on unlike processors must come to the same split to the last bit. The easy mistake is to add up by BLAS and LAPACK
(np.dot, @, np.linalg) or np.sum, whose order the processor decides, or by Python's sum, whose order its version
decides: here math.fsum adds, and all else is one operation a number, or exact.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def proportional(total: int, weights: FloatArray) -> IntArray:
    """(ranks,) integers in proportion to `weights` (ranks,), at least one of them positive, summing to `total`.

    The method of the largest remainder; of equal remainders the lower rank's counts first.
    """
    exact = total * (weights / math.fsum(weights.tolist()))  # (ranks,)
    split: IntArray = np.floor(exact).astype(np.int64)
    left = total - int(split.sum())
    split[np.argsort(split - exact, kind="stable")[:left]] += 1
    return split


def equalise(total: int, fixed: FloatArray, per_row: FloatArray) -> IntArray:
    """(ranks,) rows summing to `total` > 0 with which all ranks finish together.

    `fixed` and `per_row` (ranks,) are seconds, a >= 0 and b > 0 of each rank's a + b * rows. A rank that would
    still be in its fixed part when the others have done all rows gets none.
    """
    by_start = np.argsort(fixed, kind="stable")
    a, rate = fixed[by_start], 1.0 / per_row[by_start]
    # np.cumsum adds one after the other, unlike np.sum.
    finish = (total + np.cumsum(a * rate)) / np.cumsum(rate)  # (ranks,): when the first 1, 2, ... ranks are done
    last = np.flatnonzero(finish > a)[-1]
    split = proportional(total, np.maximum(0.0, finish[last] - fixed) / per_row)
    for _ in range(len(split)):  # each part is off by less than a row, which for a slow rank may be much
        late = int(np.argmax(np.where(split > 0, fixed + per_row * split, -1.0)))
        early = int(np.argmin(fixed + per_row * (split + 1)))
        if fixed[early] + per_row[early] * (split[early] + 1) >= fixed[late] + per_row[late] * split[late]:
            break
        split[late] -= 1
        split[early] += 1
    return split


def finish_time(split: IntArray, fixed: FloatArray, per_row: FloatArray) -> float:
    """Seconds until the last rank that has rows is done, for such a split (ranks,)."""
    return float(np.max(np.where(split > 0, fixed + per_row * split, 0.0)))


def deal(lengths: npt.NDArray[np.uint16], split: IntArray, rank: int) -> IntArray:
    """(split[rank],): where the rows of a rank are in a global batch, whose texts have `lengths` (rows,).

    Every rank gets the same mixture of short and long ones, as nearly as its number of rows lets it: the shortest
    first, they are dealt to all ranks in turn. Otherwise luck would decide who waits for whom.
    """
    dealt: IntArray = np.argsort(lengths, kind="stable")[_turns(tuple(split.tolist())) == rank]
    return dealt


@lru_cache(maxsize=8)
def _turns(split: tuple[int, ...]) -> IntArray:
    """(rows,): whose turn it is, one after the other. Each rank's turns are spread evenly; of ranks whose turns
    coincide now the lower comes first and now the higher, so that none has the shorter texts throughout."""
    whose = np.repeat(np.arange(len(split)), split)  # (rows,)
    number = np.concatenate([np.arange(count) for count in split])  # (rows,): of a rank's turns
    when = (number + 0.5) / np.array(split)[whose]
    return whose[np.lexsort((np.where(number % 2, -whose, whose), when))]
