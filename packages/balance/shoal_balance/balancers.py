"""Balancers, which choose the split of each global batch over ranks of unequal speed. All ranks choose the same split.

Give a balancer each rank's own compute time, without the wait for other ranks. With that wait all ranks look equally
slow.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from shoal_balance.speed import TimeModel, fit_time_model
from shoal_balance.split import FloatArray, IntArray, equal_finish_split, finish_time, proportional_split

FIRST_REBALANCES = (3, 6)
"""Numbers of observations after which to rebalance, before the regular interval. The first split is based on a single
number of rows."""

_RECENT = 3
"""Number of observations that must agree on a change of speed before the older history is dropped. Two are too few,
because a stall may be longer than a step."""

_CHANGE = 1.15
"""Factor by which recent times must differ from the fit to count as a change of speed. If times vary by 5%, one in 740
exceeds it by chance, but never three in a row. Regular rebalances find smaller changes."""

_WORTHWHILE = 0.01
"""Smallest predicted gain for which a split changes, so that noise does not move rows back and forth. By default a
rank's history has twenty times. If they vary by 5%, their mean is uncertain by this much."""

_RETRY_AFTER, _MOST_RETRY_AFTER = 4, 64
"""Number of rebalances without rows before a rank's next trial: initially, and at most. It doubles after each failed
trial. So a temporary stall costs little, and so does a rank that never recovers: by default three steps of 640."""

_SPARE_TIME = 0.8
"""Share of a step's time below which a trial gets more rows, because a rank may have a long fixed time and a short time
per row. The rest of the step must exceed noise, which is some hundredths of a step."""


class Balancer(Protocol):
    """Chooses the split of a global batch over the ranks.

    Balancers are deterministic: the same observations in the same order give the same splits.
    """

    def split(self, total: int) -> IntArray:
        """Return the rows of each rank, (ranks,), for a global batch of `total` rows."""
        ...

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Record one step's rows and own compute seconds, (ranks,) each; 0 seconds if unknown."""
        ...


def make_balancer(how: str, rates: FloatArray, *, every: int, steps_per_epoch: int, total: int) -> Balancer:
    """Return the balancer that `how` names; see `parse_balance`.

    Args:
        how: `steps` starts from the rates and rebalances every `every` steps.
        rates: (ranks,) rows per second of each rank.
        every: Steps between rebalances.
        steps_per_epoch: Steps of an epoch.
        total: Rows of a step. The last step of an epoch may have fewer.

    Raises:
        ValueError: `how` is not valid, or its number of shares differs from the number of ranks.
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
    """Parse the name of a balancer: `steps`, `off`, `epoch:X`, or shares such as `3,1,1`.

    Return the fixed shares (empty otherwise), and X of `epoch:X` (None otherwise). Raises ValueError for any other
    text.
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
        """Split by `shares` (ranks,), at least one of them above 0."""
        self._shares = shares

    def split(self, total: int) -> IntArray:
        """Return the rows of each rank, (ranks,), for a global batch of `total` rows."""
        return proportional_split(total, self._shares)

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Do nothing."""


class EpochBalancer:
    """Balancer of the reference system. Every `every` steps it sets shares in proportion to previous share / time.

    The first splits are equal. Times are sums over the steps since the last rebalance.
    """

    def __init__(self, *, ranks: int, every: int) -> None:
        """Rebalance every `every` steps."""
        self._every = every
        self._shares = np.ones(ranks)
        self._rows, self._seconds, self._steps = np.zeros(ranks), np.zeros(ranks), 0

    def split(self, total: int) -> IntArray:
        """Return the rows of each rank, (ranks,), for a global batch of `total` rows."""
        return proportional_split(total, self._shares)

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Record one step's rows and own compute seconds, (ranks,) each."""
        self._rows += np.where(seconds > 0, rows, 0)
        self._seconds += seconds
        self._steps += 1
        if self._steps < self._every:
            return
        timed = self._rows > 0  # ranks without times keep their shares
        self._shares = np.where(timed, self._rows / np.where(timed, self._seconds, 1.0), self._shares)
        self._rows[:], self._seconds[:], self._steps = 0, 0, 0


@dataclass(kw_only=True)
class _RankModel:
    """State of the balancer for one rank."""

    used: TimeModel
    """Model from which the rank's share is computed."""
    fitted: TimeModel
    """Newest fit. It becomes `used` if the predicted gain is large enough."""
    history: deque[tuple[int, float]]
    """(rows, seconds) of its latest steps at one speed."""
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """Its last times divided by the predicted times; 0 without rows."""
    min_rows: int = 1
    """Smallest number of rows in a trial. It also applies at the start, because the measured rate may be too low."""
    idle_rounds: int = 0
    """Number of consecutive rebalances without rows."""
    retry_after: int = _RETRY_AFTER
    """Number of rebalances without rows after which a trial follows."""

    def observe(self, rows: int, seconds: float) -> None:
        """Record a step; 0 seconds if unknown."""
        if rows > 0 and seconds > 0:
            self.history.append((rows, seconds))
        self.ratios.append(seconds / self.fitted.seconds(rows) if rows > 0 else 0.0)

    @property
    def has_finished_trial(self) -> bool:
        """True if all of its last times are of a trial's number of rows, so that the result is certain."""
        few, latest = max(self.min_rows, 1), list(self.history)[-_RECENT:]
        return len(latest) == _RECENT and all(rows == few for rows, _ in latest)

    def has_spare_time(self, finish: float) -> bool:
        """Return whether its last times were well below `finish` seconds. Then more rows may take hardly longer."""
        return max([seconds for _, seconds in self.history][-_RECENT:], default=np.inf) < _SPARE_TIME * finish

    def refit(self) -> None:
        """Fit its history again. Drop the older entries if the newest show another speed."""
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
        """Record that a rebalance gave it `rows` rows. After enough rebalances without rows, start a trial of one
        row."""
        if rows > 1:
            self.retry_after = _RETRY_AFTER
        self.idle_rounds = self.idle_rounds + 1 if rows == 0 else 0
        if self.idle_rounds > self.retry_after:
            self.idle_rounds, self.min_rows = 0, 1
            self.retry_after = min(2 * self.retry_after, _MOST_RETRY_AFTER)
            self.history.clear()


def _agree_on_a_change(ratios: Sequence[float]) -> bool:
    """Return whether enough measured times deviate from their predictions in the same direction.

    `ratios` are times divided by predicted times.
    """
    if len(ratios) < _RECENT:
        return False
    return min(ratios) > _CHANGE or 0 < min(ratios) <= max(ratios) < 1 / _CHANGE


class StepBalancer:
    """Adapts the split to the ranks' speeds from step to step.

    A rank's time for a step is modelled as a line in its rows (speed.py). The batch is split so that all ranks finish
    together. The models start from the ranks' own rates.

    A rank gets no rows only if it was too slow for a single row. It then has no new times, so from time to time it gets
    a trial of one row. After each trial that it finished early, the number of rows doubles.
    """

    def __init__(self, *, rates: FloatArray, every: int, total: int) -> None:
        """Start from known rates.

        Args:
            rates: (ranks,) rows per second, above 0.
            every: Observations between rebalances.
            total: Rows of a global batch.
        """
        self._every, self._total = every, total
        self._observations = 0
        lines, longest = [TimeModel(0.0, per_row) for per_row in (1.0 / rates).tolist()], 2 * max(every, _RECENT)
        self._ranks = [_RankModel(used=line, fitted=line, history=deque(maxlen=longest)) for line in lines]
        # The rates count as observed steps, so that they outweigh one or two slow first steps. But only a rank's own
        # steps may leave it without rows.
        for rank, rows, rate in zip(self._ranks, self.split(total).tolist(), rates.tolist(), strict=True):
            if rows > 1:
                rank.history.extend([(rows, rows / rate)] * _RECENT)

    def split(self, total: int) -> IntArray:
        """Return the rows of each rank, (ranks,), for a global batch of `total` rows."""
        split = self._equalised(total)
        short = [number for number, rank in enumerate(self._ranks) if split[number] < rank.min_rows]
        for number in short:
            giver, missing = int(np.argmax(split)), int(self._ranks[number].min_rows - split[number])
            if split[giver] > missing:
                split[giver] -= missing
                split[number] += missing
        return split

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Record one step's rows and own compute seconds, (ranks,) each; 0 seconds if unknown."""
        if not self._observations and (not seconds.any() or rows.sum() < self._total):
            return  # a GPU's times arrive some steps late
        self._observations += 1
        for rank, count, duration in zip(self._ranks, rows.tolist(), seconds.tolist(), strict=True):
            rank.observe(count, duration)
        changed = any(_agree_on_a_change(rank.ratios) for rank in self._ranks)
        if changed:
            for rank in self._ranks:
                rank.ratios.clear()  # the refit below accounts for this speed
        regular = self._observations in FIRST_REBALANCES or self._observations % self._every == 0
        if regular or changed or any(rank.min_rows and rank.has_finished_trial for rank in self._ranks):
            self._rebalance()

    def _rebalance(self) -> None:
        """Fit the models of all ranks, use them if the gain is large enough, and decide on trials."""
        for rank in self._ranks:
            rank.refit()
        tried = [rank.has_finished_trial for rank in self._ranks]
        fixed, per_row = _columns([rank.fitted for rank in self._ranks])
        best = equal_finish_split(self._total, fixed, per_row)
        present = self._equalised(self._total) if any(tried) else self.split(self._total)  # the split after the trials
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
        """Return the split, (ranks,), with which all ranks finish together, without trials."""
        return equal_finish_split(total, *_columns([rank.used for rank in self._ranks]))


def _columns(lines: Sequence[TimeModel]) -> tuple[FloatArray, FloatArray]:
    """Return the models' fixed seconds and their seconds per row, (ranks,) each."""
    fixed, per_row = np.array(lines, dtype=np.float64).T.copy()
    return fixed, per_row
