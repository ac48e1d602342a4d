"""The speed of a run since it was started, and where its time went.

Do not confuse this with the whole run, which may have been resumed on other ranks and machines: rows and seconds of the
run count over all of its starts, speeds and shares of time only since the latest.
"""

from typing import Any

from trainer.clock import Activity, Clock, StepTimer
from trainer.distributed.exchange import StepReport
from trainer.distributed.ranks import Ranks
from trainer.output.checkpoint import RunProgress
from trainer.output.efficiency import Efficiency


class Throughput:
    """Measured by the first rank's clock and the reports of steps, since the run was started or resumed."""

    def __init__(self, progress: RunProgress, clock: Clock, rates: list[float]) -> None:
        """`progress`: that of the run, which changes meanwhile. `rates` (ranks,): the ranks' own, in rows per
        second."""
        self._progress, self._clock, self.rates = progress, clock, rates
        self._rows_before, self._seconds_before = progress.rows_seen, progress.seconds
        self._efficiency = Efficiency(rates)
        self.own_rows = 0
        self.awaited = 0.0
        """Seconds that the other ranks waited, in the all-reduce of the next step, for this rank's other work."""

    def add(self, report: StepReport) -> None:
        self._efficiency.add(report.rows, report.seconds)

    @property
    def seconds(self) -> float:
        """Seconds of training, over the whole run."""
        return self._seconds_before + self._clock.training

    @property
    def rows_per_second(self) -> float | None:
        """Rows per second of training; None before the first step."""
        return self._rows / self._clock.training if self._rows else None

    @property
    def share_of_ideal(self) -> float | None:
        """Rows per second over the sum of the ranks' own rates; None before the first step."""
        rate = self.rows_per_second
        return None if rate is None else rate / sum(self.rates)

    @property
    def balanced(self) -> float | None:
        """The share of the time that ranks of these speeds would have needed; None before the first step."""
        return min(1.0, self._efficiency.ideal_seconds(self._rows) / self._clock.training) if self._rows else None

    def summary(self, ranks: Ranks, timer: StepTimer) -> dict[str, Any]:
        """The times and speeds for summary.json, of the run and since its latest start. All ranks call it at once."""
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
