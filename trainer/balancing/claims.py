"""Balancing within a step: the last rows of a global batch form a pool, which ranks claim in pieces when they are free.

A split is made before a step, and cannot foresee what delays a rank in that step. So if ranks were seen to wait for
each other, each of them leaves some rows of its share to a pool. Gradients are sums, and every rank has all rows: the
result of the step does not depend on which rank computes a piece.

Pieces are large at first and small at the end (factoring: Hummel, Schonberg and Flynn 1992): half of what is left is
cut into one piece for each rank, again and again. A piece has a cost beyond its rows, so the smallest pieces take a
multiple of that cost. All ranks then end within about the time of one such piece.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.balancing.split import proportional_split, stratified_rows

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Lengths = npt.NDArray[np.unsignedinteger]

_WINDOW = 10
"""Steps between two decisions about claims."""

_WAITS = 0.02
"""Claims are tried if ranks wait at least this share of a step on average."""

_POOL, _MOST = 3.0, 0.2
"""The pool is `_POOL` times as large as the waits, and at most `_MOST`, as shares of the global batch. The waits are
the mean of what the pool has to even out; it seldom has to even out three times as much."""

_SMALLEST = 4.0
"""The rows of the smallest pieces take so many times as long as the cost of a piece beyond its rows. In simulations,
with jitter of 3 to 12% and costs of .2 to 4% of a step, 2 to 8 do about equally well."""

_FIRST_LOOK = 2
"""While that cost is not known, a rank's part of the pool is cut into at least so many pieces."""

_TRIAL = 4
"""The number of last windows by which claims are judged together: in one window, chance often hides a gain of some
hundredths."""

_FEW, _LOSS = 4, 0.1
"""Claims end at once if, after `_FEW` steps, the steps took longer by `_LOSS` because of claims, as a share of their
time."""

_RETRY_AFTER, _MOST_RETRY_AFTER = 4, 64
"""Windows until claims that did not help are tried again: four times as many after each failure, up to the second
number."""


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """Which rank computes which rows of a step."""

    share: IntArray
    """(ranks,): the rows that each rank computes before it claims."""
    pieces: tuple[int, ...] = ()
    """Rows of each piece of the pool, in the order in which they are claimed."""
    claiming: npt.NDArray[np.bool_] | None = None
    """(ranks,): which ranks claim; None if there is no pool."""

    @property
    def counter_steps(self) -> int:
        """By how much the step moves the counter."""
        return len(self.pieces) + int(self.claiming.sum()) if self.claiming is not None else 0

    def may_claim(self, rank: int) -> bool:
        """Whether `rank` claims."""
        return self.claiming is not None and bool(self.claiming[rank])

    def own_rows(self, lengths: Lengths, rank: int) -> IntArray:
        """(share[rank],): the positions of a rank's rows in a global batch of texts of `lengths` (rows,)."""
        return stratified_rows(lengths, self._parts, rank)

    def piece_rows(self, lengths: Lengths, number: int) -> IntArray:
        """(pieces[number],): the positions of a piece's rows in it. Pieces, too, get the same mixture of lengths."""
        pool = stratified_rows(lengths, self._parts, len(self.share))
        return pool[stratified_rows(lengths[pool], np.array(self.pieces), number)]

    @property
    def _parts(self) -> IntArray:
        return np.append(self.share, sum(self.pieces)) if self.pieces else self.share


def piece_sizes(pool: int, ranks: int, smallest: float) -> tuple[int, ...]:
    """The sizes of pieces, in the order in which they are claimed, with the sum `pool`: each `ranks` of them are half
    of what is left, down to pieces of `smallest` rows."""
    found: list[int] = []
    left = pool
    while left > 0:
        size = max(1, math.ceil(smallest), -(-left // (2 * ranks)))
        for _ in range(ranks):
            found.append(min(size, left))
            left -= found[-1]
    return tuple(size for size in found if size)


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """The rows and times of a step: (ranks,) each."""

    rows: IntArray
    """Rows of the ranks' shares."""
    seconds: FloatArray
    """Seconds of computing the shares."""
    claimed: IntArray
    """Rows of the pieces that they claimed."""
    pieces: IntArray
    """The number of these pieces."""
    claiming: FloatArray
    """Seconds of asking for pieces and computing them."""


class ClaimPlanner:
    """Decides, from what all ranks know, whether there is a pool, its size, and its pieces.

    Deterministic like the balancers, by arithmetic that gives the same on all processors.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        """`enabled`: whether there may be a pool at all."""
        self._enabled = enabled
        self._pool = 0.0  # as a share of the global batch
        self._smallest: float | None = None  # rows of a piece; None: not known yet
        self._wait, self._retry_after = 0, _RETRY_AFTER  # windows
        self._gains = deque[float](maxlen=_TRIAL)
        self._planned = deque[IntArray]()
        self._seen: list[tuple[IntArray, StepTimes]] = []

    def plan(self, split: IntArray) -> StepPlan:
        """The plan of a step with this `split` (ranks,).

        Only ranks with at least half as many rows as the largest share leave rows to the pool and claim: all ranks
        would wait for the last piece of a much slower rank.
        """
        if not self._enabled:
            return StepPlan(share=split)
        self._planned.append(split)
        claiming = 2 * split >= split.max()
        pool, ranks = int(self._pool * int(split.sum())), int(claiming.sum())
        pool = min(pool, int(split[claiming].sum()) // 2)
        if ranks < 2 or pool < 2 * ranks:
            return StepPlan(share=split)
        smallest = self._smallest or pool / (ranks * _FIRST_LOOK)
        taken = proportional_split(pool, np.where(claiming, split, 0).astype(np.float64))
        return StepPlan(share=split - taken, pieces=piece_sizes(pool, ranks, smallest), claiming=claiming)

    def observe(self, step: StepTimes) -> None:
        """Record the times of the planned steps, one after the other."""
        if not self._enabled:
            return
        self._seen.append((self._planned.popleft(), step))
        harmful = self._pool > 0 and len(self._seen) >= _FEW and _gain(self._seen) < -_LOSS
        if harmful or len(self._seen) == _WINDOW:
            self._adjust(harmful=harmful)
            self._seen.clear()

    def _adjust(self, *, harmful: bool) -> None:
        waits = max(0.0, _wait_share(self._seen))
        if self._pool and (self._failed() or harmful):
            self._gains.clear()
            self._pool, self._wait = 0.0, self._retry_after
            self._retry_after = min(4 * self._retry_after, _MOST_RETRY_AFTER)
        elif self._pool or (waits >= _WAITS and not self._wait):
            self._pool = min(_MOST, _POOL * waits)
        else:
            self._wait = max(0, self._wait - 1)

    def _failed(self) -> bool:
        """Whether claims made steps no shorter, judged once pieces have the size that their cost demands."""
        if self._smallest is not None:
            self._gains.append(_gain(self._seen))
        self._smallest = _smallest_piece([step for _, step in self._seen])
        if len(self._gains) < _TRIAL:
            return False
        if math.fsum(self._gains) <= 0:
            return True
        self._retry_after = _RETRY_AFTER
        return False


def _seconds_without_claims(split: IntArray, step: StepTimes) -> list[float]:
    """The seconds that the whole splits would have taken the ranks without claims."""
    ranks = zip(split.tolist(), step.rows.tolist(), step.seconds.tolist(), strict=True)
    return [seconds * rows / share if share else 0.0 for rows, share, seconds in ranks]


def _wait_share(steps: Sequence[tuple[IntArray, StepTimes]]) -> float:
    """The share of time that ranks would have waited for the last one without claims, weighted by their speeds."""
    times = [_seconds_without_claims(split, step) for split, step in steps]
    longest = math.fsum(map(max, times))
    rows = [sum(column) for column in zip(*(split.tolist() for split, _ in steps), strict=True)]
    seconds = [math.fsum(column) for column in zip(*times, strict=True)]
    rates = [count / spent for count, spent in zip(rows, seconds, strict=True) if spent]
    return 1.0 - sum(rows) / math.fsum(rates) / longest if longest else 0.0


def _gain(steps: Sequence[tuple[IntArray, StepTimes]]) -> float:
    """By what share of their time the steps were shorter than without claims."""
    alone = math.fsum(max(_seconds_without_claims(split, step)) for split, step in steps)
    took = math.fsum(max((step.seconds + step.claiming).tolist()) for _, step in steps)
    return 1.0 - took / alone if alone else 0.0


def _smallest_piece(steps: Sequence[StepTimes]) -> float:
    """The rows that the smallest pieces should have, from the time of pieces beyond that of as many rows in a share."""
    beside, claimed, seconds, rows = [], 0, [], 0
    for step in steps:
        of_ranks = (step.rows, step.seconds, step.claimed, step.pieces, step.claiming)
        for share, spent, more, pieces_, claiming in zip(*(each.tolist() for each in of_ranks), strict=True):
            if share:
                beside.append(claiming - more * spent / share)
                claimed, rows = claimed + pieces_, rows + share
                seconds.append(spent)
    cost = max(0.0, math.fsum(beside)) / max(1, claimed)
    return _SMALLEST * cost * rows / math.fsum(seconds)
