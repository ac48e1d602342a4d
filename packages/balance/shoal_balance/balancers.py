"""Balancers, which choose the split of each global batch over ranks of unequal speed. All ranks choose the same split.

Pass each rank's own compute time to the balancer, without the time that the rank waits for other ranks. Otherwise all
ranks look equally slow.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from shoal_balance.speed import TimeModel, fit_time_model
from shoal_balance.split import FloatArray, IntArray, equal_finish_split, finish_time, proportional_split

FIRST_REBALANCES = (3, 6)
"""Observation counts at which `StepBalancer` rebalances early, before its regular interval has passed. The initial
models need an early correction, because they are based on a single row count per rank."""

_RECENT = 3
"""Number of consecutive observations that must show a change of speed before the older history is dropped. Two are too
few, because a stall may last longer than one step."""

_CHANGE = 1.15
"""Factor by which recent times must differ from the predicted times to count as a change of speed. If times vary by 5%,
one in 740 exceeds the factor by chance, but never three in a row. Regular rebalances correct smaller changes."""

_WORTHWHILE = 0.01
"""Smallest predicted gain, as a fraction of the step time, for which the split changes. It keeps noise from moving
rows back and forth: by default a rank's history has 20 times. If these vary by 5%, their mean is uncertain by 1%."""

_RETRY_AFTER, _MOST_RETRY_AFTER = 4, 64
"""Number of rebalances after which a rank without rows gets a trial: the initial value and the maximum. The number
doubles after each failed trial. So a temporary stall costs little. A rank that never recovers costs little, too: by
default its trials take three of 640 steps."""

_SPARE_TIME = 0.8
"""Fraction of the predicted step time. If a trial takes less than this fraction, the next trial gets more rows, because
the rank may have a long fixed time and a short time per row. The spare fifth of the step time must exceed the noise,
which is a few percent."""


class Balancer(Protocol):
    """Chooses the split of a global batch over the ranks.

    Balancers are deterministic: the same observations in the same order give the same splits.
    """

    def split(self, total: int) -> IntArray:
        """Return the number of rows for each rank, (ranks,), in a global batch of `total` rows."""
        ...

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Record each rank's number of rows and compute time in one step, (ranks,) each. An unknown time is 0."""
        ...


def make_balancer(how: str, rates: FloatArray, *, every: int, steps_per_epoch: int, total: int) -> Balancer:
    """Create the balancer that `how` names.

    Args:
        how: A name that `parse_balance` accepts. `steps` starts from `rates` and rebalances every `every` steps.
        rates: Rows per second of each rank, (ranks,).
        every: Number of steps between rebalances, for `steps`.
        steps_per_epoch: Number of steps of an epoch, for `epoch:X`.
        total: Number of rows of a global batch. The last batch of an epoch may have fewer rows.

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

    Return a pair. The first item is the list of fixed shares, or an empty list. The second is the X of `epoch:X`, or
    None. Raises ValueError for any other name.
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
    """Balancer that splits every global batch in the same proportions."""

    def __init__(self, shares: FloatArray) -> None:
        """Split in proportion to `shares` (ranks,). At least one share must be above 0."""
        self._shares = shares

    def split(self, total: int) -> IntArray:
        return proportional_split(total, self._shares)

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Ignore the observation, because the shares are fixed."""


class EpochBalancer:
    """Balancer that sets each rank's share in proportion to its rows per second over the last `every` steps.

    Shares are equal for the first `every` steps. This balancer exists for comparison with the reference system.
    """

    def __init__(self, *, ranks: int, every: int) -> None:
        """Start with equal shares, and rebalance every `every` steps."""
        self._every = every
        self._shares = np.ones(ranks)
        self._rows, self._seconds, self._steps = np.zeros(ranks), np.zeros(ranks), 0

    def split(self, total: int) -> IntArray:
        return proportional_split(total, self._shares)

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
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
    """(rows, seconds) of the rank's latest steps, without the steps before its speed last changed."""
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """Measured / predicted time of the rank's last steps; 0 for a step without rows."""
    min_rows: int = 1
    """Minimum number of rows that each split assigns to the rank during its trial; 0 without a trial. Each rank starts
    with a trial of one row, because its measured rate may be too low."""
    idle_rounds: int = 0
    """Number of consecutive rebalances that assigned no rows to the rank."""
    retry_after: int = _RETRY_AFTER
    """Value of `idle_rounds` after which a trial starts."""

    def observe(self, rows: int, seconds: float) -> None:
        """Record the rank's number of rows and compute time in one step. An unknown time is 0."""
        if rows > 0 and seconds > 0:
            self.history.append((rows, seconds))
        self.ratios.append(seconds / self.fitted.seconds(rows) if rows > 0 else 0.0)

    @property
    def has_finished_trial(self) -> bool:
        """Whether all of the rank's last times were measured with the trial's number of rows."""
        few, latest = max(self.min_rows, 1), list(self.history)[-_RECENT:]
        return len(latest) == _RECENT and all(rows == few for rows, _ in latest)

    def has_spare_time(self, finish: float) -> bool:
        """Return whether the rank's last times were well below `finish` seconds, so that it may be able to compute more
        rows."""
        return max([seconds for _, seconds in self.history][-_RECENT:], default=np.inf) < _SPARE_TIME * finish

    def refit(self) -> None:
        """Fit the model to the history again. If the newest times show a change of speed, drop the older ones first."""
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
        """Record that a rebalance assigned `rows` rows to the rank. After enough rebalances without rows, start a trial
        of one row."""
        if rows > 1:
            self.retry_after = _RETRY_AFTER
        self.idle_rounds = self.idle_rounds + 1 if rows == 0 else 0
        if self.idle_rounds > self.retry_after:
            self.idle_rounds, self.min_rows = 0, 1
            self.retry_after = min(2 * self.retry_after, _MOST_RETRY_AFTER)
            self.history.clear()


def _agree_on_a_change(ratios: Sequence[float]) -> bool:
    """Return whether there are enough `ratios` (measured / predicted times), and all deviate in the same direction."""
    if len(ratios) < _RECENT:
        return False
    return min(ratios) > _CHANGE or 0 < min(ratios) <= max(ratios) < 1 / _CHANGE


class StepBalancer:
    """Balancer that measures the ranks' speeds in every step and adapts the split to them.

    Each rank's step time is modelled as a fixed time plus a time per row (speed.py). The global batch is split so that
    all ranks finish together.

    A rank gets no rows only if it was too slow even for a single row. Without rows its speed is no longer measured, so
    it gets a trial of one row from time to time. After each trial that finishes early, the next trial has twice as many
    rows.
    """

    def __init__(self, *, rates: FloatArray, every: int, total: int) -> None:
        """Create the initial models of all ranks from measured rates.

        Args:
            rates: Rows per second of each rank, (ranks,), above 0.
            every: Number of observed steps between rebalances.
            total: Number of rows of a global batch.
        """
        self._every, self._total = every, total
        self._observations = 0
        lines, longest = [TimeModel(0.0, per_row) for per_row in (1.0 / rates).tolist()], 2 * max(every, _RECENT)
        self._ranks = [_RankModel(used=line, fitted=line, history=deque(maxlen=longest)) for line in lines]
        # Enter the rates as if they were observed steps, so that they outweigh one or two slow first steps. Do not
        # enter them for a rank with a single row, because only measured steps may leave a rank without rows.
        for rank, rows, rate in zip(self._ranks, self.split(total).tolist(), rates.tolist(), strict=True):
            if rows > 1:
                rank.history.extend([(rows, rows / rate)] * _RECENT)

    def split(self, total: int) -> IntArray:
        split = self._equalised(total)
        short = [number for number, rank in enumerate(self._ranks) if split[number] < rank.min_rows]
        for number in short:
            giver, missing = int(np.argmax(split)), int(self._ranks[number].min_rows - split[number])
            if split[giver] > missing:
                split[giver] -= missing
                split[number] += missing
        return split

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        if not self._observations and (not seconds.any() or rows.sum() < self._total):
            return  # the times of GPUs arrive a few steps late
        self._observations += 1
        for rank, count, duration in zip(self._ranks, rows.tolist(), seconds.tolist(), strict=True):
            rank.observe(count, duration)
        changed = any(_agree_on_a_change(rank.ratios) for rank in self._ranks)
        if changed:
            for rank in self._ranks:
                rank.ratios.clear()  # the rebalance below refits the models to the new speed
        regular = self._observations in FIRST_REBALANCES or self._observations % self._every == 0
        if regular or changed or any(rank.min_rows and rank.has_finished_trial for rank in self._ranks):
            self._rebalance()

    def _rebalance(self) -> None:
        """Refit the models of all ranks, use them if the predicted gain is large enough, and start or end trials."""
        for rank in self._ranks:
            rank.refit()
        tried = [rank.has_finished_trial for rank in self._ranks]
        fixed, per_row = _columns([rank.fitted for rank in self._ranks])
        best = equal_finish_split(self._total, fixed, per_row)
        present = self._equalised(self._total) if any(tried) else self.split(self._total)  # without finished trials
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
        """Return the split, (ranks,), with which all ranks should finish together. It ignores trials."""
        return equal_finish_split(total, *_columns([rank.used for rank in self._ranks]))


def _columns(lines: Sequence[TimeModel]) -> tuple[FloatArray, FloatArray]:
    """Return the fixed seconds and the seconds per row of the models, (ranks,) each."""
    fixed, per_row = np.array(lines, dtype=np.float64).T.copy()
    return fixed, per_row
