"""One sitting of a run, from its start to its end or its interruption: how fast it is, and where its time goes.

The easy mistake is to mix it up with the run, which may have had other ranks, on other machines, before: rows and
seconds of the run are counted over all sittings, speeds and where time went over this one.
"""

from typing import Any

from trainer.accounts import Accounts
from trainer.clock import Activity, Clock, Laps
from trainer.exchange import Report
from trainer.progress import Progress
from trainer.ranks import Ranks


class Sitting:
    """What the first rank's clock and the reports of steps say of this sitting."""

    def __init__(self, progress: Progress, clock: Clock, rates: list[float]) -> None:
        """`progress` is the run's, as it goes on. `rates` (ranks,): the ranks' own, in rows a second."""
        self._progress, self._clock, self.rates = progress, clock, rates
        self._rows_before, self._seconds_before = progress.rows_seen, progress.seconds
        self._accounts = Accounts(rates)
        self._own_rows = self._claimed = 0
        self._awaited = 0.0

    def compute(self, rows: int, *, claimed: int) -> None:
        """This rank has computed so many rows, of which it had claimed some beyond its share."""
        self._own_rows += rows
        self._claimed += claimed

    def held_up(self, seconds: float) -> None:
        """The other ranks wait so long, in the all-reduce of the next step, for what this one did before it."""
        self._awaited += seconds

    def add(self, report: Report) -> None:
        """What is known of a step."""
        self._accounts.add(report.rows, report.seconds)

    def measured_again(self, rates: list[float]) -> None:
        """The ranks' own rates after the last step; of each rank's two the higher counts."""
        self.rates = [max(pair) for pair in zip(self.rates, rates, strict=True)]

    @property
    def seconds(self) -> float:
        """Of training, over all sittings of the run."""
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
        return min(1.0, self._accounts.ideal_seconds(self._rows) / self._clock.training) if self._rows else None

    def summary(self, ranks: Ranks, laps: Laps) -> dict[str, Any]:
        """What summary.json says of the run's and the sitting's time. All ranks ask at once."""
        phases = ranks.gather(dict(laps.sums))
        times = self._clock.times
        shares: dict[str, float] = {}
        if self._rows:
            shares = self._accounts.shares(
                rows=self._rows,
                seconds=self._clock.training,
                phases=phases,
                checkpoints=times[Activity.CHECKPOINTS],
                awaited=ranks.from_first(self._awaited),
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
