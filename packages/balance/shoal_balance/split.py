"""How rows are divided among ranks: pure arithmetic, the same on every rank.

Ranks on different processors must compute the same split to the last bit. Do not add up by BLAS or LAPACK (np.dot, @,
np.linalg) or np.sum, because the processor decides their order, nor by Python's sum, whose order depends on its
version. Here math.fsum adds; everything else is one operation a number, or exact.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Lengths = npt.NDArray[np.unsignedinteger]


def proportional_split(total: int, weights: FloatArray) -> IntArray:
    """(ranks,) integers in proportion to `weights` (ranks,), of which at least one is positive, with the sum `total`.

    The method of the largest remainder; of equal remainders the lower rank's comes first.
    """
    if len(weights) == 1:
        return np.array([total], dtype=np.int64)
    exact = total * (weights / math.fsum(weights.tolist()))  # (ranks,)
    split: IntArray = np.floor(exact).astype(np.int64)
    left = total - int(split.sum())
    split[np.argsort(split - exact, kind="stable")[:left]] += 1
    return split


def equal_finish_split(total: int, fixed: FloatArray, per_row: FloatArray) -> IntArray:
    """(ranks,) rows with the sum `total` > 0 with which all ranks finish together.

    `fixed` and `per_row` (ranks,) are seconds, a >= 0 and b > 0 of each rank's a + b * rows. A rank that would still be
    in its fixed part when the others have computed all rows gets none.
    """
    by_start = np.argsort(fixed, kind="stable")
    a, rate = fixed[by_start], 1.0 / per_row[by_start]
    # np.cumsum adds one after the other, unlike np.sum.
    finish = (total + np.cumsum(a * rate)) / np.cumsum(rate)  # (ranks,): when the first 1, 2, ... ranks are done
    last = np.flatnonzero(finish > a)[-1]
    split = proportional_split(total, np.maximum(0.0, finish[last] - fixed) / per_row)
    for _ in range(len(split)):  # each part is off by less than a row, which for a slow rank may be much
        late = int(np.argmax(np.where(split > 0, fixed + per_row * split, -1.0)))
        early = int(np.argmin(fixed + per_row * (split + 1)))
        if fixed[early] + per_row[early] * (split[early] + 1) >= fixed[late] + per_row[late] * split[late]:
            break
        split[late] -= 1
        split[early] += 1
    return split


def finish_time(split: IntArray, fixed: FloatArray, per_row: FloatArray) -> float:
    """Seconds until the last rank that has rows is done, with `split` (ranks,)."""
    return float(np.max(np.where(split > 0, fixed + per_row * split, 0.0)))


def stratified_rows(lengths: Lengths, split: IntArray, rank: int) -> IntArray:
    """(split[rank],): the positions of a rank's rows in a global batch of texts of `lengths` (rows,).

    Rows are dealt to the ranks in turn, the shortest first, so that every rank gets the same mixture of short and long
    texts, as nearly as its number of rows allows. Otherwise chance would decide which rank waits.
    """
    dealt: IntArray = np.argsort(lengths, kind="stable")[_turns(tuple(split.tolist())) == rank]
    return dealt


@lru_cache(maxsize=8)
def _turns(split: tuple[int, ...]) -> IntArray:
    """(rows,): the rank of each turn. Each rank's turns are spread evenly. If turns of ranks coincide, the lower and
    the higher rank come first alternately, so that no rank gets the shorter texts throughout."""
    whose = np.repeat(np.arange(len(split)), split)  # (rows,)
    number = np.concatenate([np.arange(count) for count in split])  # (rows,): of a rank's turns
    when = (number + 0.5) / np.array(split)[whose]
    return whose[np.lexsort((np.where(number % 2, -whose, whose), when))]
