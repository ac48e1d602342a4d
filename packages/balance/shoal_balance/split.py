"""Splits rows over ranks: pure arithmetic, the same on every rank.

Ranks on different processors must compute the same split to the last bit. Do not sum with BLAS or LAPACK (np.dot, @,
np.linalg) or np.sum: the processor decides their order. Do not use Python's sum: its order depends on the version. Use
math.fsum. All other operations here are exact or elementwise.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Lengths = npt.NDArray[np.unsignedinteger]


def proportional_split(total: int, weights: FloatArray) -> IntArray:
    """Return integers (ranks,) that sum to `total`, in proportion to `weights` (ranks,), by the largest remainder
    method.

    At least one weight is positive. Among equal remainders, the lower rank gets the larger integer.
    """
    if len(weights) == 1:
        return np.array([total], dtype=np.int64)
    exact = total * (weights / math.fsum(weights.tolist()))  # (ranks,)
    split: IntArray = np.floor(exact).astype(np.int64)
    left = total - int(split.sum())
    split[np.argsort(split - exact, kind="stable")[:left]] += 1
    return split


def equal_finish_split(total: int, fixed: FloatArray, per_row: FloatArray) -> IntArray:
    """Return the rows of each rank, (ranks,), with the sum `total` > 0, with which all ranks finish together.

    `fixed` >= 0 and `per_row` > 0, (ranks,) each, are the seconds of each rank's line: fixed + per_row * rows. A rank
    gets no rows if the others compute all rows within its fixed time.
    """
    by_start = np.argsort(fixed, kind="stable")
    a, rate = fixed[by_start], 1.0 / per_row[by_start]
    # np.cumsum adds in sequence, unlike np.sum.
    finish = (total + np.cumsum(a * rate)) / np.cumsum(rate)  # (ranks,): finish time of the first 1, 2, ... ranks
    last = np.flatnonzero(finish > a)[-1]
    split = proportional_split(total, np.maximum(0.0, finish[last] - fixed) / per_row)
    for _ in range(len(split)):  # rounding errs by up to a row, which takes a slow rank long
        late = int(np.argmax(np.where(split > 0, fixed + per_row * split, -1.0)))
        early = int(np.argmin(fixed + per_row * (split + 1)))
        if fixed[early] + per_row[early] * (split[early] + 1) >= fixed[late] + per_row[late] * split[late]:
            break
        split[late] -= 1
        split[early] += 1
    return split


def finish_time(split: IntArray, fixed: FloatArray, per_row: FloatArray) -> float:
    """Return the seconds until the last rank with rows finishes, for a `split` (ranks,)."""
    return float(np.max(np.where(split > 0, fixed + per_row * split, 0.0)))


def stratified_rows(lengths: Lengths, split: IntArray, rank: int) -> IntArray:
    """Return the positions, (split[rank],), of a rank's rows in a global batch of texts with `lengths` (rows,).

    The ranks take rows in turn, the shortest first. So every rank gets a similar mixture of short and long texts.
    Otherwise chance would decide which rank waits.
    """
    positions: IntArray = np.argsort(lengths, kind="stable")[_turns(tuple(split.tolist())) == rank]
    return positions


@lru_cache(maxsize=8)
def _turns(split: tuple[int, ...]) -> IntArray:
    """Return the rank of each turn, (rows,). The turns of each rank are spread evenly.

    If turns of two ranks coincide, the lower and the higher rank go first alternately. So no rank always gets the
    shorter texts.
    """
    ranks = np.repeat(np.arange(len(split)), split)  # (rows,)
    number = np.concatenate([np.arange(count) for count in split])  # (rows,): number of the turn within its rank
    when = (number + 0.5) / np.array(split)[ranks]
    return ranks[np.lexsort((np.where(number % 2, -ranks, ranks), when))]
