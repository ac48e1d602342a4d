"""How a global batch is split over ranks of unequal speed: pure arithmetic, the same on every rank.

Each rank's time for a step is taken as a + b * rows: what every step costs, and what every row costs. The
balancer fits both to measured compute times and cuts the global batch so that all ranks finish together. The easy
mistake is to feed it times that contain the wait for the others: then all ranks look equally slow, whatever their
speed. It wants each rank's own compute time.

Ranks on unlike processors must come to the same split to the last bit. BLAS and LAPACK (np.dot, @, np.linalg) and
np.sum add up in an order that the processor decides, and Python's sum in one that its version does: here math.fsum
adds, and all else is one operation a number, or exact.
"""

import math
from collections import defaultdict, deque
from functools import lru_cache
from statistics import median
from typing import Protocol

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

FIRST_REBALANCES = (3, 6)
"""Rebalance after so many observations, before the regular rhythm: the first split knows of one number of rows only."""

_RECENT = 3
"""Observations that must agree before an older history is dropped: one slow step is noise, three are a change."""

_CHANGE = 1.15
"""The factor by which recent times must depart from the fit to count as a change of speed."""

_WORTHWHILE = 0.01
"""The predicted gain below which a split stays as it is, so that noise does not move rows to and fro."""

_PATIENCE, _MOST_PATIENCE = 4, 64
"""Rebalances that a rank is without rows before it is given one again, at first and at most. A rank that fails such a
trial waits twice as long for its next: a stall that passes costs little, and so does a rank that never recovers."""

_EASE = 0.8
"""The share of a step below which a trial grows: a rank may need long to start, and little for each row."""

_STALL = 1.2
"""A time that is so many times what the fit says, when the fit is scaled to the median of all, is no part of it:
something held the rank up. Times err upwards alone, so the others are not spread about their median by as much."""

_TRUST_IN_PROPORTION = 0.05
"""How firmly the fit holds on to a = 0 while the row counts seen are too alike to tell a from b."""


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


def fit(rows: FloatArray, seconds: FloatArray) -> tuple[float, float]:
    """a >= 0 and b > 0 of seconds = a + b * rows, from observations (n,) with rows > 0 and seconds > 0.

    A line that is drawn towards a = 0: with only one row count seen, time is taken as proportional to rows. It is
    robust to outliers: it goes through the medians of the observations with equal rows, and goes a second time without
    those that are far above it. Those of few rows stay: what is above a line through the origin there is a.
    """
    points = list(zip(rows.tolist(), seconds.tolist(), strict=True))
    a, b = _line(points)
    ratios = [time / (a + b * count) for count, time in points]
    most, few = _STALL * median(ratios), median(rows.tolist()) / 2
    return _line([point for point, ratio in zip(points, ratios, strict=True) if ratio <= most or point[0] < few])


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """By least squares with a penalty on a (ridge regression), of the medians by rows: of (rows, seconds)."""
    by_rows = defaultdict[float, list[float]](list)
    for count, time in points:
        by_rows[count].append(time)
    medians = [(count, median(times), len(times)) for count, times in by_rows.items()]
    row_unit = math.fsum(weight * count for count, _, weight in medians) / len(points)
    time_unit = math.fsum(weight * time for _, time, weight in medians) / len(points)
    scaled = [(count / row_unit, time / time_unit, weight) for count, time, weight in medians]
    x, xx = math.fsum(w * x for x, _, w in scaled), math.fsum(w * x * x for x, _, w in scaled)
    y, xy = math.fsum(w * y for _, y, w in scaled), math.fsum(w * x * y for x, y, w in scaled)
    weight = (1 + _TRUST_IN_PROPORTION) * len(points)
    determinant = weight * xx - x * x  # above 0, as the penalty is
    a, b = (xx * y - x * xy) / determinant, (weight * xy - x * y) / determinant
    if a < 0 or b <= 0:
        a, b = 0.0, xy / xx
    return a * time_unit, b * time_unit / row_unit


class Balancer(Protocol):
    """Says how to split a global batch over the ranks.

    Deterministic: ranks that feed theirs the same observations in the same order get the same splits.
    """

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        ...

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Take in one step's rows and own compute seconds, (ranks,) each; 0 seconds where they are not known."""
        ...


def balancer(how: str, rates: FloatArray, *, every: int, steps_per_epoch: int, total: int) -> Balancer:
    """The balancer that `--balance` names; `rates` (ranks,) are the ranks' own, in rows a second, and `total` the rows
    of a step, but for shorter ones at the ends of epochs.

    `steps` starts from them, and looks again after `every` steps. Raises ValueError, with a sentence, for what cannot
    be.
    """
    shares, epochs = parse(how)
    if shares and len(shares) != len(rates):
        raise ValueError(f"there are {len(shares)} shares for {len(rates)} ranks")
    if how == "off" or len(rates) == 1:
        return FixedShares(np.ones(len(rates)))
    if shares:
        return FixedShares(np.array(shares))
    if epochs:
        return ByEpoch(ranks=len(rates), every=max(1, round(epochs * steps_per_epoch)))
    return BySteps(rates=rates, every=every, total=total)


def parse(how: str) -> tuple[list[float], float | None]:
    """What `--balance` says: fixed shares (else none), and the number of epochs of `epoch:X` (else None).

    Raises ValueError, with a sentence, for text that says nothing.
    """
    if how in ("steps", "off"):
        return [], None
    kind, _, number = how.partition(":")
    try:
        if kind == "epoch":
            if not 0 < float(number) < np.inf:
                raise ValueError
            return [], float(number)
        shares = [float(share) for share in how.split(",")]
        if min(shares) >= 0 and 0 < sum(shares) < np.inf:
            return shares, None
    except ValueError:
        pass
    raise ValueError("it must be steps, off, epoch:X (every X epochs), or a share for each rank, such as 3,1,1")


class FixedShares:
    """Splits in the same proportions at every step."""

    def __init__(self, shares: FloatArray) -> None:
        """`shares` (ranks,), not all of them 0."""
        self._shares = shares

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        return proportional(total, self._shares)

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Ignored."""


class ByEpoch:
    """The reference's balancer: every so many steps, shares in proportion to 1 / (time / previous share).

    The first splits are equal; times are sums over the steps since the last look.
    """

    def __init__(self, *, ranks: int, every: int) -> None:
        """`every`: steps between two looks."""
        self._every = every
        self._shares = np.ones(ranks)
        self._rows, self._seconds, self._steps = np.zeros(ranks), np.zeros(ranks), 0

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        return proportional(total, self._shares)

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Take in one step's rows and own compute seconds, (ranks,) each."""
        self._rows += np.where(seconds > 0, rows, 0)
        self._seconds += seconds
        self._steps += 1
        if self._steps < self._every:
            return
        timed = self._rows > 0  # others keep what they had
        self._shares = np.where(timed, self._rows / np.where(timed, self._seconds, 1.0), self._shares)
        self._rows[:], self._seconds[:], self._steps = 0, 0, 0


class BySteps:
    """Follows the ranks' speeds from step to step.

    It starts from the ranks' own rates. A rank is left without rows only when it was seen to be too slow for a single
    one. It then has no more times to show, so now and then it is given one row: what held it up may have
    passed.
    """

    def __init__(self, *, rates: FloatArray, every: int, total: int) -> None:
        """`rates` (ranks,): rows a second, above 0. `every`: observations between rebalances. `total`: rows of a global
        batch."""
        ranks = len(rates)
        self._rates, self._every, self._total = rates, every, total
        self._fixed = np.zeros(ranks)
        self._per_row = 1.0 / rates
        self._least = np.ones(ranks, dtype=np.int64)  # the rates, too, may have been measured in a bad moment
        self._without = [0] * ranks  # rebalances in a row
        self._patience = [_PATIENCE] * ranks
        self._observations = 0
        self._latest = deque[FloatArray](maxlen=_RECENT)
        """By what factors the ranks' last times differ from their fits: (ranks,) each."""
        self._history = [deque[tuple[int, float]](maxlen=2 * max(every, _RECENT)) for _ in range(ranks)]
        self._fits = np.array([self._fixed, self._per_row])  # (2, ranks): a and b of each

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        split = equalise(total, self._fixed, self._per_row)
        for rank in np.flatnonzero(split < self._least):
            giver, wanted = int(np.argmax(split)), int(self._least[rank] - split[rank])
            if split[giver] > wanted:
                split[giver] -= wanted
                split[rank] += wanted
        return split

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Take in one step's rows and own compute seconds, (ranks,) each; 0 seconds where they are not known."""
        if not self._observations:
            if not seconds.any() or rows.sum() < self._total:
                return  # a GPU's times come some steps late
            self._remember_rates(rows)
        for history, count, duration in zip(self._history, rows.tolist(), seconds.tolist(), strict=True):
            if count > 0 and duration > 0:
                history.append((count, duration))
        self._observations += 1
        self._latest.append(seconds / np.where(rows > 0, self._fits[0] + self._fits[1] * rows, np.inf))
        regular = self._observations in FIRST_REBALANCES or self._observations % self._every == 0
        departed = self._departed()
        if departed:
            self._latest.clear()  # of a speed that is known now
        if regular or departed or (self._least.any() and (self._tried() & (self._least > 0)).any()):
            self._rebalance()

    def _remember_rates(self, rows: IntArray) -> None:
        """Take the rates as seen before the first step: they outweigh a slow one or two at the beginning. But not where
        they would leave a rank without rows: that is for it to show."""
        for history, count, rate in zip(self._history, rows.tolist(), self._rates.tolist(), strict=True):
            if count > 1:
                history.extend([(count, count / rate)] * _RECENT)

    def _rebalance(self) -> None:
        for rank, history in enumerate(self._history):
            if history:
                self._fits[:, rank] = _follow(history, *self._fits[:, rank].tolist())
        fixed, per_row = self._fits
        tried = self._tried()
        best, present = equalise(self._total, fixed, per_row), self.split(self._total)
        if tried.any():
            present = equalise(self._total, self._fixed, self._per_row)  # as it is when trials end
        finish = _finish(present, fixed, per_row)
        more = 2 * np.maximum(self._least, 1)
        growing = tried & (more <= self._total // len(best)) & self._at_ease(finish)
        if _finish(best, fixed, per_row) <= (1 - _WORTHWHILE) * finish:
            self._fixed, self._per_row = fixed.copy(), per_row.copy()
            self._least = np.where((best == 0) & ~tried, 1, 0)
            growing &= best < more
        else:
            self._least[tried] = 0
        self._least[growing] = more[growing]
        self._offer_again(self.split(self._total))

    def _at_ease(self, finish: float) -> npt.NDArray[np.bool_]:
        """(ranks,): whose last steps took well less than `finish` seconds: more rows may take hardly longer."""
        lasts = [[seconds for _, seconds in history][-_RECENT:] or [np.inf] for history in self._history]
        return np.array([max(last) < _EASE * finish for last in lasts])

    def _offer_again(self, split: IntArray) -> None:
        """Give ranks that were without rows for long enough a trial: one row, judged by what it takes from now on, and
        twice as many each time that it was done with ease."""
        for rank, count in enumerate(split.tolist()):
            if count > 1:
                self._patience[rank] = _PATIENCE
            self._without[rank] = self._without[rank] + 1 if count == 0 else 0
            if self._without[rank] > self._patience[rank]:
                self._without[rank] = 0
                self._patience[rank] = min(2 * self._patience[rank], _MOST_PATIENCE)
                self._history[rank].clear()
                self._least[rank] = 1

    def _departed(self) -> bool:
        """Whether a rank's last times all say that its speed is another one: then a look cannot wait for its turn."""
        if len(self._latest) < _RECENT:
            return False
        latest = np.array(self._latest)  # (_RECENT, ranks)
        least, most = latest.min(0), latest.max(0)
        return bool(((least > _CHANGE) | ((least > 0) & (most < 1 / _CHANGE))).any())

    def _tried(self) -> npt.NDArray[np.bool_]:
        """(ranks,): whose newest entries are of as few rows as a trial has: what they say is known for sure."""
        return np.array(
            [
                len(history) >= _RECENT and all(count == few for count, _ in list(history)[-_RECENT:])
                for history, few in zip(self._history, np.maximum(self._least, 1).tolist(), strict=True)
            ]
        )


def _follow(history: deque[tuple[int, float]], a: float, b: float) -> tuple[float, float]:
    """The fit to a rank's history, (rows, seconds) from the oldest, whose fit was a + b * rows so far.

    Cuts the history to its newest entries when those tell of another speed.
    """
    rows, seconds = np.array(history, dtype=np.float64).T  # (observations,) each
    if b > 0 and len(history) > _RECENT:
        ratios = seconds[-_RECENT:] / (a + b * rows[-_RECENT:])
        if ratios.min() > _CHANGE or ratios.max() < 1 / _CHANGE:
            while len(history) > _RECENT:
                history.popleft()
            rows, seconds = rows[-_RECENT:], seconds[-_RECENT:]
    return fit(rows, seconds)


def _finish(split: IntArray, fixed: FloatArray, per_row: FloatArray) -> float:
    """When the last rank that has rows is done."""
    return float(np.max(np.where(split > 0, fixed + per_row * split, 0.0)))
