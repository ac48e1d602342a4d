"""How a global batch is split over ranks of unequal speed, step after step: the same on every rank.

The easy mistake is to feed a balancer times that contain the wait for the others: then all ranks look equally slow,
whatever their speed. It needs each rank's own compute time.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from trainer.balancing.speed import Line, fit
from trainer.balancing.split import FloatArray, IntArray, equalise, finish_time, proportional

FIRST_REBALANCES = (3, 6)
"""Rebalance after so many observations, before the regular rhythm: the first split knows of one number of rows only."""

_RECENT = 3
"""Observations that must agree before an older history is dropped: one slow step is noise, three are a change. Two are
too few, as a stall may be longer than a step."""

_CHANGE = 1.15
"""The factor by which recent times must depart from the fit to count as a change of speed. Where times vary by 5%, one
in 740 is so far above it by chance, and three in a row are not. Smaller changes are found by the regular rhythm."""

_WORTHWHILE = 0.01
"""The predicted gain below which a split stays as it is, so that noise does not move rows to and fro: the mean of
twenty times that vary by 5%, as many as a rank's history has by default, is itself uncertain by that much."""

_RETRY_AFTER, _MOST_RETRY_AFTER = 4, 64
"""Rebalances that a rank is without rows before it is given one again, at first and at most. A rank that fails such a
trial waits twice as long for its next: a stall that passes costs little, and so does a rank that never recovers, whose
trials are then three steps of 640 by default."""

_EASE = 0.8
"""The share of a step below which a trial grows: a rank may need long to start, and little for each row. What it has
left of a step must be more than noise, which is some hundredths."""


class Balancer(Protocol):
    """Decides how to split a global batch over the ranks.

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
    shares, epochs = parse_balance(how)
    if shares and len(shares) != len(rates):
        raise ValueError(f"there are {len(shares)} shares for {len(rates)} ranks")
    if how == "off" or len(rates) == 1:
        return FixedShares(np.ones(len(rates)))
    if shares:
        return FixedShares(np.array(shares))
    if epochs:
        return ByEpoch(ranks=len(rates), every=max(1, round(epochs * steps_per_epoch)))
    return BySteps(rates=rates, every=every, total=total)


def parse_balance(how: str) -> tuple[list[float], float | None]:
    """What `--balance` asks for: fixed shares (else none), and the number of epochs of `epoch:X` (else None).

    Raises ValueError, with a sentence, for any other text.
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


@dataclass(kw_only=True)
class _Rank:
    """What the balancer knows of one rank."""

    used: Line
    """By which its share is computed."""
    fitted: Line
    """The newest fit; it is used once that is worth while."""
    history: deque[tuple[int, float]]
    """(rows, seconds) of its latest steps, of one speed."""
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """Its last times by what the fit predicted; 0 without rows."""
    least: int = 1
    """The rows that it has at least: on trial, and at first, as its rate may have been measured in a bad moment."""
    without: int = 0
    """Rebalances in a row that left it without rows."""
    retry_after: int = _RETRY_AFTER
    """So many of these are followed by a trial."""

    def observe(self, rows: int, seconds: float) -> None:
        """Take in a step; 0 seconds where they are not known."""
        if rows > 0 and seconds > 0:
            self.history.append((rows, seconds))
        self.ratios.append(seconds / self.fitted.seconds(rows) if rows > 0 else 0.0)

    @property
    def has_changed(self) -> bool:
        """Whether its last times agree that its speed is another one."""
        return _agree_on_a_change(self.ratios)

    @property
    def is_tried(self) -> bool:
        """Whether its last times are of as few rows as a trial has: what they show is known for sure."""
        few, latest = max(self.least, 1), list(self.history)[-_RECENT:]
        return len(latest) == _RECENT and all(rows == few for rows, _ in latest)

    def is_at_ease(self, finish: float) -> bool:
        """Whether its last times were well below `finish` seconds: more rows may take hardly longer."""
        return max([seconds for _, seconds in self.history][-_RECENT:], default=np.inf) < _EASE * finish

    def refit(self) -> None:
        """Fit its history anew, of which the newest entries alone are kept when they show another speed."""
        if not self.history:
            return
        latest = list(self.history)[-_RECENT:]
        if len(self.history) > _RECENT and _agree_on_a_change(
            [time / self.fitted.seconds(rows) for rows, time in latest]
        ):
            self.history.clear()
            self.history.extend(latest)
        self.fitted = fit(list(self.history))

    def offer(self, rows: int) -> None:
        """A rebalance gave it so many rows: where it was without for long enough, begin a trial of one row."""
        if rows > 1:
            self.retry_after = _RETRY_AFTER
        self.without = self.without + 1 if rows == 0 else 0
        if self.without > self.retry_after:
            self.without, self.least = 0, 1
            self.retry_after = min(2 * self.retry_after, _MOST_RETRY_AFTER)
            self.history.clear()


def _agree_on_a_change(ratios: Sequence[float]) -> bool:
    """Whether as many times as it needs depart alike from what was predicted; `ratios`: of these times to that."""
    if len(ratios) < _RECENT:
        return False
    return min(ratios) > _CHANGE or 0 < min(ratios) <= max(ratios) < 1 / _CHANGE


class BySteps:
    """Follows the ranks' speeds from step to step.

    Each rank's time for a step is taken as a line in its rows (speed.py), and the batch is cut so that all ranks finish
    together. It starts from the ranks' own rates. A rank is left without rows only when it was seen to be too slow for
    a single one. It then has no more times to show, so now and then it is given one row, and twice as many each time
    that it was done with ease: what held it up may have passed.
    """

    def __init__(self, *, rates: FloatArray, every: int, total: int) -> None:
        """`rates` (ranks,): rows a second, above 0. `every`: observations between rebalances. `total`: rows of a global
        batch."""
        self._every, self._total = every, total
        self._observations = 0
        lines, longest = [Line(0.0, per_row) for per_row in (1.0 / rates).tolist()], 2 * max(every, _RECENT)
        self._ranks = [_Rank(used=line, fitted=line, history=deque(maxlen=longest)) for line in lines]
        # The rates count as steps that were seen, so that they outweigh a slow one or two at the beginning. But not
        # where they would leave a rank without rows: that is for it to show.
        for rank, rows, rate in zip(self._ranks, self.split(total).tolist(), rates.tolist(), strict=True):
            if rows > 1:
                rank.history.extend([(rows, rows / rate)] * _RECENT)

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        split = self._equalised(total)
        short = [number for number, rank in enumerate(self._ranks) if split[number] < rank.least]
        for number in short:
            giver, missing = int(np.argmax(split)), int(self._ranks[number].least - split[number])
            if split[giver] > missing:
                split[giver] -= missing
                split[number] += missing
        return split

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Take in one step's rows and own compute seconds, (ranks,) each; 0 seconds where they are not known."""
        if not self._observations and (not seconds.any() or rows.sum() < self._total):
            return  # a GPU's times come some steps late
        self._observations += 1
        for rank, count, duration in zip(self._ranks, rows.tolist(), seconds.tolist(), strict=True):
            rank.observe(count, duration)
        changed = any(rank.has_changed for rank in self._ranks)
        if changed:
            for rank in self._ranks:
                rank.ratios.clear()  # of a speed that is known now
        regular = self._observations in FIRST_REBALANCES or self._observations % self._every == 0
        if regular or changed or any(rank.least and rank.is_tried for rank in self._ranks):
            self._rebalance()

    def _rebalance(self) -> None:
        """Fit all ranks' lines, and use them where that is worth while; decide about trials."""
        for rank in self._ranks:
            rank.refit()
        tried = [rank.is_tried for rank in self._ranks]
        fixed, per_row = _columns([rank.fitted for rank in self._ranks])
        best = equalise(self._total, fixed, per_row)
        present = self._equalised(self._total) if any(tried) else self.split(self._total)  # as it is when trials end
        finish = finish_time(present, fixed, per_row)
        gains = finish_time(best, fixed, per_row) <= (1 - _WORTHWHILE) * finish
        for rank, was_tried, rows in zip(self._ranks, tried, best.tolist(), strict=True):
            more = 2 * max(rank.least, 1)
            grows = was_tried and more <= self._total // len(self._ranks) and rank.is_at_ease(finish)
            if gains:
                rank.used = rank.fitted
                rank.least = 1 if rows == 0 and not was_tried else 0
                grows = grows and rows < more
            elif was_tried:
                rank.least = 0
            if grows:
                rank.least = more
        for rank, rows in zip(self._ranks, self.split(self._total).tolist(), strict=True):
            rank.offer(rows)

    def _equalised(self, total: int) -> IntArray:
        """(ranks,): the split with which all finish together, without regard to trials."""
        return equalise(total, *_columns([rank.used for rank in self._ranks]))


def _columns(lines: Sequence[Line]) -> tuple[FloatArray, FloatArray]:
    """(ranks,) each: the fixed parts of lines, and those by row."""
    fixed, per_row = np.array(lines, dtype=np.float64).T.copy()
    return fixed, per_row
