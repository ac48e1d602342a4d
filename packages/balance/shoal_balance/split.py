"""Split of rows over ranks: pure arithmetic with the same result on every rank.

Ranks on different processors must compute the same split to the last bit. So sum with math.fsum. The order of additions
in BLAS, LAPACK (np.dot, @, np.linalg) and np.sum depends on the processor. The rounding of Python's sum depends on the
Python version. All other operations here are exact or elementwise.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Lengths = npt.NDArray[np.unsignedinteger]


def proportional_split(total: int, weights: FloatArray) -> IntArray:
    """Return the number of rows for each rank, (ranks,), in proportion to `weights` (ranks,), with the sum `total`.

    Shares are rounded by the largest remainder method. If remainders are equal, lower ranks are rounded up first. At
    least one weight must be positive.
    """
    if len(weights) == 1:
        return np.array([total], dtype=np.int64)
    exact = total * (weights / math.fsum(weights.tolist()))  # (ranks,)
    split: IntArray = np.floor(exact).astype(np.int64)
    left = total - int(split.sum())
    split[np.argsort(split - exact, kind="stable")[:left]] += 1
    return split


def bounded(split: IntArray, most: IntArray) -> IntArray:
    """Return `split` (ranks,) with at most `most` (ranks,) rows for each rank, and at least one row if there are
    enough rows.

    The sum of the split does not change, so the sum of `most` must not be smaller.
    """
    total = int(split.sum())
    rows: IntArray = np.clip(split, min(1, total // len(split)), most)
    while (missing := total - int(rows.sum())) > 0:
        room = most - rows
        rows += np.minimum(proportional_split(missing, np.where(room > 0, rows + 1.0, 0.0)), room)
    for _ in range(int(rows.sum()) - total):
        rows[np.argmax(rows)] -= 1
    return rows


def equal_finish_split(total: int, fixed: FloatArray, per_row: FloatArray) -> IntArray:
    """Return the number of rows for each rank, (ranks,), with the sum `total` > 0, so that all ranks finish together.

    A rank needs fixed + per_row * rows seconds, with `fixed` >= 0 and `per_row` > 0, (ranks,) each. A rank gets no rows
    if the other ranks can compute all rows within its fixed time.
    """
    by_start = np.argsort(fixed, kind="stable")
    a, rate = fixed[by_start], 1.0 / per_row[by_start]
    # np.cumsum adds in sequence, unlike np.sum.
    finish = (total + np.cumsum(a * rate)) / np.cumsum(rate)  # (ranks,): finish time with the first 1, 2, ... ranks
    last = np.flatnonzero(finish > a)[-1]
    split = proportional_split(total, np.maximum(0.0, finish[last] - fixed) / per_row)
    for _ in range(len(split)):  # correct the rounding, because a single row takes long on a slow rank
        late = int(np.argmax(np.where(split > 0, fixed + per_row * split, -1.0)))
        early = int(np.argmin(fixed + per_row * (split + 1)))
        if fixed[early] + per_row[early] * (split[early] + 1) >= fixed[late] + per_row[late] * split[late]:
            break
        split[late] -= 1
        split[early] += 1
    return split


def finish_time(split: IntArray, fixed: FloatArray, per_row: FloatArray) -> float:
    """Return the seconds until all ranks have computed their rows of `split` (ranks,).

    `fixed` and `per_row` are those of `equal_finish_split`.
    """
    return float(np.max(np.where(split > 0, fixed + per_row * split, 0.0)))


def stratified_rows(lengths: Lengths, split: IntArray, rank: int) -> IntArray:
    """Return the positions, (split[rank],), of the rank's rows in a global batch of texts with `lengths` (rows,).

    The ranks take rows in turn, from the shortest text to the longest. So every rank gets a similar mixture of lengths.
    Otherwise chance would decide which rank gets the long texts and keeps the other ranks waiting.
    """
    positions: IntArray = np.argsort(lengths, kind="stable")[_turns(tuple(split.tolist())) == rank]
    return positions


@lru_cache(maxsize=8)
def _turns(split: tuple[int, ...]) -> IntArray:
    """Return the rank that takes each row, (rows,), with the turns of each rank spread evenly.

    If two ranks are due at the same time, the lower and the higher rank take the first turn alternately. So no rank
    always gets the shorter texts.
    """
    ranks = np.repeat(np.arange(len(split)), split)  # (rows,)
    number = np.concatenate([np.arange(count) for count in split])  # (rows,): index of the row among its rank's rows
    when = (number + 0.5) / np.array(split)[ranks]
    return ranks[np.lexsort((np.where(number % 2, -ranks, ranks), when))]
