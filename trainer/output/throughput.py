"""Measures the speed of a run since its latest start, and the activities on which the time was spent.

Do not confuse the time since the latest start with the time of the whole run. The run might have been resumed on
different ranks and machines. Rows and seconds of the run are counted since the first start, but speeds and shares of
time since the latest start.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.clock import ALL_REDUCE, COMPUTE, ORDER, Activity, Clock, StepTimer
from trainer.distributed.exchange import StepReport
from trainer.distributed.ranks import Ranks
from trainer.output.checkpoint import Progress

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_WINDOW = 10
"""Number of steps over which a rank's rate is measured.

A noise of a tenth in the time of a step then changes the ideal time by only a thousandth.
"""


class Efficiency:
    """Computes the ideal time of the steps since the latest start, and the reasons for the remaining time.

    The ideal time is the least time in which ranks of the measured speeds can compute these steps.

    A rank's rate is its rows divided by its own compute seconds in a window of steps. In single steps, noise would
    appear as a difference in speed. The ideal time of a window is its rows divided by the sum of the rates. Most of a
    rank's time in the all-reduce is the wait for slower ranks. So the communication time is measured on the rank with
    the least all-reduce time. It is this time, minus this rank's waits for slower ranks, summed over steps.
    """

    def __init__(self, rates: Sequence[float]) -> None:
        """`rates` (ranks,): rows per second before the first step, which a rank keeps until it has computed rows."""
        self._rates = np.array(rates, dtype=np.float64)
        self._rows, self._seconds = np.zeros(len(rates)), np.zeros(len(rates))  # in the current window
        self._steps = 0
        self._ideal = 0.0  # seconds, over the previous windows
        self._counted = 0
        self._longest = 0.0  # compute seconds of the slowest rank, summed over steps

    def add(self, rows: IntArray, seconds: FloatArray) -> None:
        """Add one step: the rows (ranks,) and own compute seconds (ranks,) of the ranks. Unknown seconds are all 0."""
        if not seconds.any():
            return
        self._rows += rows
        self._seconds += seconds
        self._counted += int(rows.sum())
        self._longest += float(seconds.max())
        self._steps += 1
        if self._steps == _WINDOW:
            self._ideal += self._window_ideal()
            self._rates = self._window_rates()
            self._rows[:], self._seconds[:], self._steps = 0, 0, 0

    def ideal_seconds(self, rows: int) -> float:
        """Return the ideal seconds for `rows`: those of the added steps, and of a few steps with unknown times."""
        return (self._ideal + self._window_ideal()) * self._scale(rows)

    def shares(
        self,
        *,
        rows: int,
        seconds: float,
        phases: Sequence[Mapping[str, float]],
        checkpoints: float,
        awaited: float,
    ) -> dict[str, float]:
        """Return the shares of `seconds` of training on `rows` rows: `balanced`, and one share for each reason of lost
        time.

        Each share is at least 0, and all shares add up to 1. `phases` (ranks,): each rank's seconds by phase
        (clock.py). `checkpoints`: the seconds in which the first rank wrote checkpoints. `awaited`: the part of these
        seconds for which the other ranks waited in the all-reduce of the next step.
        """
        reducing = np.array([spent.get(ALL_REDUCE, 0.0) for spent in phases])
        reducing[1:] -= awaited
        last = phases[int(np.argmin(reducing))]
        longest, ideal = self._longest * self._scale(rows), self.ideal_seconds(rows)
        wait = longest - sum(last.get(phase, 0.0) for phase in COMPUTE)
        spent = {
            "balanced": ideal,
            "imbalance": longest - ideal,
            "communication": float(reducing.min()) - wait,
            "data": last.get(ORDER, 0.0),
            "checkpoints": checkpoints,
        }
        left, shares = seconds, {}
        for reason, own in spent.items():
            own = min(max(own, 0.0), left)  # work during a wait for other ranks costs no time
            left -= own
            shares[reason] = own / seconds
        return {**shares, "rest": left / seconds}

    def _scale(self, rows: int) -> float:
        return rows / self._counted if self._counted else 0.0

    def _window_ideal(self) -> float:
        return float(self._rows.sum() / self._window_rates().sum())

    def _window_rates(self) -> FloatArray:
        timed = (self._rows > 0) & (self._seconds > 0)
        return np.where(timed, self._rows / np.where(timed, self._seconds, 1.0), self._rates)


class Throughput:
    """Throughput since the latest start, from the first rank's clock and the reports of steps."""

    def __init__(self, progress: Progress, clock: Clock, rates: list[float]) -> None:
        """`progress`: the progress of the run, which the caller updates. `rates` (ranks,): the ranks' own rates in rows
        per second."""
        self._progress, self._clock, self.rates = progress, clock, rates
        self._rows_before, self._seconds_before = progress.rows_seen, progress.seconds
        self._efficiency = Efficiency(rates)
        self.own_rows = 0
        self.awaited = 0.0
        """Seconds that the other ranks waited in the all-reduce of the next step while this rank wrote a checkpoint."""

    def add(self, report: StepReport) -> None:
        self._efficiency.add(report.rows, report.seconds)

    @property
    def seconds(self) -> float:
        """Seconds of training since the first start of the run."""
        return self._seconds_before + self._clock.training

    @property
    def rows_per_second(self) -> float | None:
        """Rows per second of training since the latest start; None before the first step."""
        return self._rows / self._clock.training if self._rows else None

    @property
    def share_of_ideal(self) -> float | None:
        """Rows per second divided by the sum of the ranks' own rates; None before the first step."""
        rate = self.rows_per_second
        return None if rate is None else rate / sum(self.rates)

    @property
    def balanced(self) -> float | None:
        """Ideal time divided by the training time, at most 1; None before the first step."""
        return min(1.0, self._efficiency.ideal_seconds(self._rows) / self._clock.training) if self._rows else None

    def summary(self, ranks: Ranks, timer: StepTimer) -> dict[str, Any]:
        """Return the times and speeds for summary.json. All ranks call this method at the same time."""
        phases = ranks.gather(dict(timer.sums))
        times = self._clock.times
        shares: dict[str, float] = {}
        if self._rows:
            shares = self._efficiency.shares(
                rows=self._rows,
                seconds=self._clock.training,
                phases=phases,
                checkpoints=times[Activity.CHECKPOINTS],
                awaited=ranks.broadcast(self.awaited),
            )
        return {
            "samples_per_second": self._progress.rows_seen / self.seconds if self.seconds else 0.0,
            "share_of_ideal": self.share_of_ideal,
            "balanced": shares.pop("balanced", None),
            "lost": shares or None,
            "profile": phases,
            "seconds": self.seconds,
            "times": times,
            "wall": sum(times.values()),
            "own_rates": self.rates,
            "rows_of_ranks": ranks.gather(self.own_rows),
        }

    @property
    def _rows(self) -> int:
        return self._progress.rows_seen - self._rows_before
