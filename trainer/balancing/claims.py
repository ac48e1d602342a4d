"""Balance within a step: the last rows of a global batch are in a pool, which ranks claim in pieces as they come free.

A split is made before a step, and no split foresees what holds a rank up in it. So where ranks were seen to wait for
each other, each of them leaves some rows of its share to a pool. Gradients are sums, and every rank has all rows:
whoever computes a piece, the step is the same.

Pieces are large at first and small at the end (factoring: Hummel, Schonberg and Flynn 1992): half of what is left goes
to all ranks alike, again and again. A piece costs something beyond its rows, so the last ones are no smaller than some
multiple of that; ranks then end within about the time of such a piece.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.balancing.split import deal, proportional

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Lengths = npt.NDArray[np.uint16]

_WINDOW = 10
"""Steps between two looks at whether claims are worth while."""

_WAITS = 0.02
"""The share of a step that ranks wait, on average, from which on claims are tried."""

_POOL, _MOST = 3.0, 0.2
"""The pool is so many times as large as the waits, and at most so large, as shares of the global batch. Waits are the
mean of what the pool has to even out; it seldom has to even out three times as much."""

_SMALLEST = 4.0
"""The smallest pieces: their rows take so many times as long as what a piece costs beyond them. By simulation, of
jitter of 3 to 12% and costs of .2 to 4% of a step, 2 to 8 do about equally well."""

_FIRST_LOOK = 2
"""Into so many pieces, at least, a rank's part of the pool is cut as long as that cost is not known."""

_TRIAL = 4
"""The last windows whose steps judge claims together: in one, chance often hides a gain of some hundredths."""

_FEW, _LOSS = 4, 0.1
"""After so many steps that took so much longer by claims, as a share of their time, claims end at once."""

_RETRY_AFTER, _MOST_RETRY_AFTER = 4, 64
"""Windows until claims that were not worth while are tried again: four times as many each time, and these at most."""


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """Who computes what of a step."""

    share: IntArray
    """(ranks,): rows that they compute before they claim."""
    pieces: tuple[int, ...] = ()
    """Rows of each piece of the pool, in the order in which they are claimed."""
    claiming: npt.NDArray[np.bool_] | None = None
    """(ranks,): who claims; None: there is no pool."""

    @property
    def numbers(self) -> int:
        """By how much the counter moves."""
        return len(self.pieces) + int(self.claiming.sum()) if self.claiming is not None else 0

    def may_claim(self, rank: int) -> bool:
        """Whether a rank claims."""
        return self.claiming is not None and bool(self.claiming[rank])

    def own(self, lengths: Lengths, rank: int) -> IntArray:
        """(share[rank],): where the rows of a rank's share are in a global batch of texts of `lengths` (rows,)."""
        return deal(lengths, self._parts, rank)

    def piece(self, lengths: Lengths, number: int) -> IntArray:
        """(pieces[number],): where the rows of a piece are in it: pieces, too, get the same mixture of lengths."""
        pool = deal(lengths, self._parts, len(self.share))
        return pool[deal(lengths[pool], np.array(self.pieces), number)]

    @property
    def _parts(self) -> IntArray:
        return np.append(self.share, sum(self.pieces)) if self.pieces else self.share


def pieces(pool: int, ranks: int, smallest: float) -> tuple[int, ...]:
    """The sizes of pieces, in the order in which they are claimed, that sum to `pool`: each `ranks` of them together
    half of what is left, down to pieces of `smallest` rows."""
    found: list[int] = []
    left = pool
    while left > 0:
        size = max(1, math.ceil(smallest), -(-left // (2 * ranks)))
        for _ in range(ranks):
            found.append(min(size, left))
            left -= found[-1]
    return tuple(size for size in found if size)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What a step took its ranks: (ranks,) each."""

    rows: IntArray
    """Of their shares."""
    seconds: FloatArray
    """Of computing those."""
    claimed: IntArray
    """Rows of the pieces that they claimed."""
    pieces: IntArray
    """How many these were."""
    claiming: FloatArray
    """Seconds of asking for pieces and computing them."""


class Claims:
    """Decides, from what all ranks know, whether there is a pool, how large it is, and its pieces.

    Deterministic as balancers are, and by arithmetic that is the same on all processors.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        """`enabled`: whether there may be a pool at all."""
        self._enabled = enabled
        self._pool = 0.0  # as a share of the global batch
        self._smallest: float | None = None  # rows of a piece; None: not known yet
        self._wait, self._retry_after = 0, _RETRY_AFTER  # windows
        self._gains = deque[float](maxlen=_TRIAL)
        self._planned = deque[IntArray]()
        self._seen: list[tuple[IntArray, Observed]] = []

    def plan(self, split: IntArray) -> StepPlan:
        """How a step goes whose rows are split so.

        Ranks leave rows to the pool, and claim, that have at least half as many as the one with most: of a much slower
        rank all would wait for its last piece.
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
        taken = proportional(pool, np.where(claiming, split, 0).astype(np.float64))
        return StepPlan(share=split - taken, pieces=pieces(pool, ranks, smallest), claiming=claiming)

    def observe(self, step: Observed) -> None:
        """Take in what the steps that were planned took, one after the other."""
        if not self._enabled:
            return
        self._seen.append((self._planned.popleft(), step))
        harmful = self._pool > 0 and len(self._seen) >= _FEW and _gain(self._seen) < -_LOSS
        if harmful or len(self._seen) == _WINDOW:
            self._look(harmful=harmful)
            self._seen.clear()

    def _look(self, *, harmful: bool) -> None:
        waits = max(0.0, _waits(self._seen))
        if self._pool and (self._failed() or harmful):
            self._gains.clear()
            self._pool, self._wait = 0.0, self._retry_after
            self._retry_after = min(4 * self._retry_after, _MOST_RETRY_AFTER)
        elif self._pool or (waits >= _WAITS and not self._wait):
            self._pool = min(_MOST, _POOL * waits)
        else:
            self._wait = max(0, self._wait - 1)

    def _failed(self) -> bool:
        """Whether steps were no shorter for their claims, once pieces are as large as what they cost demands."""
        if self._smallest is not None:
            self._gains.append(_gain(self._seen))
        self._smallest = _smallest([step for _, step in self._seen])
        if len(self._gains) < _TRIAL:
            return False
        if math.fsum(self._gains) <= 0:
            return True
        self._retry_after = _RETRY_AFTER
        return False


def _alone(split: IntArray, step: Observed) -> list[float]:
    """What the whole splits would have taken the ranks, without claims."""
    ranks = zip(split.tolist(), step.rows.tolist(), step.seconds.tolist(), strict=True)
    return [seconds * rows / share if share else 0.0 for rows, share, seconds in ranks]


def _waits(steps: Sequence[tuple[IntArray, Observed]]) -> float:
    """The share of their time that ranks would have waited for the last one without claims, weighed by their speeds."""
    times = [_alone(split, step) for split, step in steps]
    longest = math.fsum(map(max, times))
    rows = [sum(column) for column in zip(*(split.tolist() for split, _ in steps), strict=True)]
    seconds = [math.fsum(column) for column in zip(*times, strict=True)]
    rates = [count / spent for count, spent in zip(rows, seconds, strict=True) if spent]
    return 1.0 - sum(rows) / math.fsum(rates) / longest if longest else 0.0


def _gain(steps: Sequence[tuple[IntArray, Observed]]) -> float:
    """By what share of their time the steps were shorter than without claims."""
    alone = math.fsum(max(_alone(split, step)) for split, step in steps)
    took = math.fsum(max((step.seconds + step.claiming).tolist()) for _, step in steps)
    return 1.0 - took / alone if alone else 0.0


def _smallest(steps: Sequence[Observed]) -> float:
    """How many rows the smallest pieces are to have, by what pieces took more than such rows in a share."""
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
