"""How a global batch is split over ranks of unequal speed, step after step: the same on every rank.

Do not give a balancer times that contain the wait for other ranks: then all ranks look equally slow, whatever their
speed. It needs each rank's own compute time.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from shoal_balance.speed import TimeModel, fit_time_model
from shoal_balance.split import FloatArray, IntArray, equal_finish_split, finish_time, proportional_split

FIRST_REBALANCES = (3, 6)
"""Observations after which to rebalance before the regular rhythm begins: the first split knows only one number of
rows."""

_RECENT = 3
"""Observations that must agree before the older history is dropped: one slow step is noise, three are a change. Two are
too few, because a stall may be longer than a step."""

_CHANGE = 1.15
"""The factor by which recent times must differ from the fit to count as a change of speed. If times vary by 5%, one in
740 is so far above the fit by chance, and three in a row are not. The regular rhythm finds smaller changes."""

_WORTHWHILE = 0.01
"""The predicted gain below which a split stays as it is, so that noise does not move rows to and fro. The mean of
twenty times that vary by 5%, as many as a rank's history has by default, is itself uncertain by that much."""

_RETRY_AFTER, _MOST_RETRY_AFTER = 4, 64
"""Rebalances that a rank spends without rows before it gets one again: at first, and at most. After a failed trial it
waits twice as long for the next: a stall that passes costs little, and so does a rank that never recovers, whose trials
are then three steps of 640 by default."""

_SPARE_TIME = 0.8
"""The share of a step below which a trial grows: a rank may need long to start, and little for each row. The time that
it has left must be more than noise, which is some hundredths of a step."""


class Balancer(Protocol):
    """Decides how to split a global batch over the ranks.

    Deterministic: balancers that get the same observations in the same order return the same splits.
    """

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        ...

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Take in one step's rows and own compute seconds, (ranks,) each; 0 seconds where they are not known."""
        ...


def make_balancer(how: str, rates: FloatArray, *, every: int, steps_per_epoch: int, total: int) -> Balancer:
    """The balancer that `how` names. `rates` (ranks,): the ranks' own, in rows per second. `total`: the rows of a
    step; steps at the end of an epoch may be shorter.

    `steps` starts from the rates and rebalances after every `every` steps. Raises ValueError for another number of
    shares than of ranks, and as `parse_balance` does.
    """
    shares, epochs = parse_balance(how)
    if shares and len(shares) != len(rates):
        raise ValueError(f"there are {len(shares)} shares for {len(rates)} ranks")
    if how == "off" or len(rates) == 1:
        return FixedShares(np.ones(len(rates)))
    if shares:
        return FixedShares(np.array(shares))
    if epochs:
        return EpochBalancer(ranks=len(rates), every=max(1, round(epochs * steps_per_epoch)))
    return StepBalancer(rates=rates, every=every, total=total)


def parse_balance(how: str) -> tuple[list[float], float | None]:
    """Parse the name of a balancer: the fixed shares (else none), and the number of epochs of `epoch:X` (else None).

    Raises ValueError with a sentence for any other text.
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
    """Splits every step in the same proportions."""

    def __init__(self, shares: FloatArray) -> None:
        """`shares` (ranks,), not all of them 0."""
        self._shares = shares

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        return proportional_split(total, self._shares)

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Ignored."""


class EpochBalancer:
    """The balancer of the reference system: every `every` steps, shares in proportion to 1 / (time / previous share).

    The first splits are equal. Times are sums over the steps since the last rebalance.
    """

    def __init__(self, *, ranks: int, every: int) -> None:
        """`every`: steps between rebalances."""
        self._every = every
        self._shares = np.ones(ranks)
        self._rows, self._seconds, self._steps = np.zeros(ranks), np.zeros(ranks), 0

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        return proportional_split(total, self._shares)

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
class _RankModel:
    """What the balancer knows about one rank."""

    used: TimeModel
    """The model by which its share is computed."""
    fitted: TimeModel
    """The newest fit. It becomes `used` once that is worthwhile."""
    history: deque[tuple[int, float]]
    """(rows, seconds) of its latest steps at one speed."""
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """Its last times divided by the predicted times; 0 without rows."""
    min_rows: int = 1
    """The rows that it gets at least: in a trial, and at first, because its rate may have been measured at a bad
    moment."""
    idle_rounds: int = 0
    """Successive rebalances that left it without rows."""
    retry_after: int = _RETRY_AFTER
    """The number of these that is followed by a trial."""

    def observe(self, rows: int, seconds: float) -> None:
        """Record a step; 0 seconds if they are not known."""
        if rows > 0 and seconds > 0:
            self.history.append((rows, seconds))
        self.ratios.append(seconds / self.fitted.seconds(rows) if rows > 0 else 0.0)

    @property
    def has_finished_trial(self) -> bool:
        """Whether its last times are all of the few rows of a trial, so that their result is certain."""
        few, latest = max(self.min_rows, 1), list(self.history)[-_RECENT:]
        return len(latest) == _RECENT and all(rows == few for rows, _ in latest)

    def has_spare_time(self, finish: float) -> bool:
        """Whether its last times were well below `finish` seconds: more rows may take hardly longer."""
        return max([seconds for _, seconds in self.history][-_RECENT:], default=np.inf) < _SPARE_TIME * finish

    def refit(self) -> None:
        """Fit its history again; keep only the newest entries if they show another speed."""
        if not self.history:
            return
        latest = list(self.history)[-_RECENT:]
        if len(self.history) > _RECENT and _agree_on_a_change(
            [time / self.fitted.seconds(rows) for rows, time in latest]
        ):
            self.history.clear()
            self.history.extend(latest)
        self.fitted = fit_time_model(list(self.history))

    def assign(self, rows: int) -> None:
        """Note that a rebalance gave it `rows` rows. If it was long enough without rows, begin a trial of one row."""
        if rows > 1:
            self.retry_after = _RETRY_AFTER
        self.idle_rounds = self.idle_rounds + 1 if rows == 0 else 0
        if self.idle_rounds > self.retry_after:
            self.idle_rounds, self.min_rows = 0, 1
            self.retry_after = min(2 * self.retry_after, _MOST_RETRY_AFTER)
            self.history.clear()


def _agree_on_a_change(ratios: Sequence[float]) -> bool:
    """Whether enough times differ in the same direction from the prediction; `ratios`: times divided by predicted
    times."""
    if len(ratios) < _RECENT:
        return False
    return min(ratios) > _CHANGE or 0 < min(ratios) <= max(ratios) < 1 / _CHANGE


class StepBalancer:
    """Follows the ranks' speeds from step to step.

    Each rank's time for a step is modelled as a line in its rows (speed.py), and the batch is split so that all ranks
    finish together. The models start from the ranks' own rates. A rank is left without rows only if it was too slow for
    a single row. It then has no new times, so now and then it gets a trial of one row, and twice as many rows after
    each trial that it finished early: its problem may have passed.
    """

    def __init__(self, *, rates: FloatArray, every: int, total: int) -> None:
        """`rates` (ranks,): rows per second, above 0. `every`: observations between rebalances. `total`: rows of a
        global batch."""
        self._every, self._total = every, total
        self._observations = 0
        lines, longest = [TimeModel(0.0, per_row) for per_row in (1.0 / rates).tolist()], 2 * max(every, _RECENT)
        self._ranks = [_RankModel(used=line, fitted=line, history=deque(maxlen=longest)) for line in lines]
        # The rates count as observed steps, so that they outweigh one or two slow steps at the beginning. But only a
        # rank's own steps may leave it without rows.
        for rank, rows, rate in zip(self._ranks, self.split(total).tolist(), rates.tolist(), strict=True):
            if rows > 1:
                rank.history.extend([(rows, rows / rate)] * _RECENT)

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        split = self._equalised(total)
        short = [number for number, rank in enumerate(self._ranks) if split[number] < rank.min_rows]
        for number in short:
            giver, missing = int(np.argmax(split)), int(self._ranks[number].min_rows - split[number])
            if split[giver] > missing:
                split[giver] -= missing
                split[number] += missing
        return split

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Take in one step's rows and own compute seconds, (ranks,) each; 0 seconds where they are not known."""
        if not self._observations and (not seconds.any() or rows.sum() < self._total):
            return  # times of a GPU arrive some steps late
        self._observations += 1
        for rank, count, duration in zip(self._ranks, rows.tolist(), seconds.tolist(), strict=True):
            rank.observe(count, duration)
        changed = any(_agree_on_a_change(rank.ratios) for rank in self._ranks)
        if changed:
            for rank in self._ranks:
                rank.ratios.clear()  # the refit below knows this speed
        regular = self._observations in FIRST_REBALANCES or self._observations % self._every == 0
        if regular or changed or any(rank.min_rows and rank.has_finished_trial for rank in self._ranks):
            self._rebalance()

    def _rebalance(self) -> None:
        """Fit the models of all ranks, use them if that is worthwhile, and decide about trials."""
        for rank in self._ranks:
            rank.refit()
        tried = [rank.has_finished_trial for rank in self._ranks]
        fixed, per_row = _columns([rank.fitted for rank in self._ranks])
        best = equal_finish_split(self._total, fixed, per_row)
        present = self._equalised(self._total) if any(tried) else self.split(self._total)  # as after the trials
        finish = finish_time(present, fixed, per_row)
        gains = finish_time(best, fixed, per_row) <= (1 - _WORTHWHILE) * finish
        for rank, was_tried, rows in zip(self._ranks, tried, best.tolist(), strict=True):
            more = 2 * max(rank.min_rows, 1)
            grows = was_tried and more <= self._total // len(self._ranks) and rank.has_spare_time(finish)
            if gains:
                rank.used = rank.fitted
                rank.min_rows = 1 if rows == 0 and not was_tried else 0
                grows = grows and rows < more
            elif was_tried:
                rank.min_rows = 0
            if grows:
                rank.min_rows = more
        for rank, rows in zip(self._ranks, self.split(self._total).tolist(), strict=True):
            rank.assign(rows)

    def _equalised(self, total: int) -> IntArray:
        """(ranks,): the split with which all ranks finish together, without trials."""
        return equal_finish_split(total, *_columns([rank.used for rank in self._ranks]))


def _columns(lines: Sequence[TimeModel]) -> tuple[FloatArray, FloatArray]:
    """(ranks,) each: the models' fixed seconds, and their seconds per row."""
    fixed, per_row = np.array(lines, dtype=np.float64).T.copy()
    return fixed, per_row
