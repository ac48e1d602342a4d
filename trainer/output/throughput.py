"""How fast a run is since it was started, and where its time goes.

The easy mistake is to mix it up with the run, which may have had other ranks, on other machines, before: rows and
seconds of the run are counted over all of its starts, speeds and where time went since the latest.
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
        """`progress` is the run's, as it goes on. `rates` (ranks,): the ranks' own, in rows a second."""
        self._progress, self._clock, self.rates = progress, clock, rates
        self._rows_before, self._seconds_before = progress.rows_seen, progress.seconds
        self._efficiency = Efficiency(rates)
        self._own_rows = self._claimed = 0
        self._awaited = 0.0

    def add_own_rows(self, rows: int, *, claimed: int) -> None:
        """This rank has computed so many rows, of which it had claimed some beyond its share."""
        self._own_rows += rows
        self._claimed += claimed

    def add_wait(self, seconds: float) -> None:
        """The other ranks wait so long, in the all-reduce of the next step, for what this one did before it."""
        self._awaited += seconds

    def add(self, report: StepReport) -> None:
        """What is known of a step."""
        self._efficiency.add(report.rows, report.seconds)

    def add_final_rates(self, rates: list[float]) -> None:
        """The ranks' own rates after the last step; of each rank's two the higher counts."""
        self.rates = [max(pair) for pair in zip(self.rates, rates, strict=True)]

    @property
    def seconds(self) -> float:
        """Of training, over the whole run."""
        return self._seconds_before + self._clock.training

    @property
    def rows_per_second(self) -> float | None:
        """Of training; None before the first step."""
        return self._rows / self._clock.training if self._rows else None

    @property
    def share_of_ideal(self) -> float | None:
        """Rows a second over the sum of the ranks' own rates; None before the first step."""
        rate = self.rows_per_second
        return None if rate is None else rate / sum(self.rates)

    @property
    def balanced(self) -> float | None:
        """The share of the time that ranks as fast as these were would have needed; None before the first step."""
        return min(1.0, self._efficiency.ideal_seconds(self._rows) / self._clock.training) if self._rows else None

    def summary(self, ranks: Ranks, timer: StepTimer) -> dict[str, Any]:
        """What summary.json holds about time, of the run and since its latest start. All ranks call it at once."""
        phases = ranks.gather(dict(timer.sums))
        times = self._clock.times
        shares: dict[str, float] = {}
        if self._rows:
            shares = self._efficiency.shares(
                rows=self._rows,
                seconds=self._clock.training,
                phases=phases,
                checkpoints=times[Activity.CHECKPOINTS],
                awaited=ranks.broadcast(self._awaited),
            )
        return {
            "samples_per_second": self._progress.rows_seen / self.seconds,
            "share_of_ideal": self.share_of_ideal,
            "balanced": shares.pop("balanced", None),
            "lost": shares or None,
            "profile": phases,
            "seconds": self.seconds,
            "times": times,
            "wall": sum(times.values()),
            "own_rates": self.rates,
            "rows_of_ranks": ranks.gather(self._own_rows),
            "rows_claimed": ranks.gather(self._claimed),
        }

    @property
    def _rows(self) -> int:
        return self._progress.rows_seen - self._rows_before
