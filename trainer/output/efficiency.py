"""How efficient training was: the time that ranks of these speeds needed at least, and where the rest of the time went.

The speeds are those of the run itself. A rank's rate is its rows divided by its own compute seconds, in a window of
steps. A window's ideal time is its rows divided by the sum of the rates, as if all ranks had computed all the time and
done nothing else. Do not use the rates of single steps: noise in a step would then count as speed, and only a balancer
that knew each step beforehand could reach the ideal. Over a window noise averages out, and a rank that changes its
speed has an average speed in only two or three windows.

In the rest of the time, ranks that are done with a step wait for the last one (imbalance), and all wait for the sum of
their gradients (communication), for the numbers of the next rows (data), and for the first rank's checkpoints. Most of
a rank's time in the all-reduce is the wait for slower ranks. What counts is the rank that spends least time in
all-reduces, usually the last to arrive, less its wait for ranks that compute longer. This is summed over steps, because
ranks do not leave an all-reduce together, and a rank that leaves one late has less time in the next.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from trainer.clock import ALL_REDUCE, COMPUTE, ORDER

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_WINDOW = 10
"""Steps over which a rank's rate is measured. Noise of a tenth of a step's time then changes the ideal by a
thousandth."""


class Efficiency:
    """Adds up the steps since a run was started or resumed."""

    def __init__(self, rates: Sequence[float]) -> None:
        """`rates` (ranks,): rows per second before the first step; a rank keeps its rate until it has had rows."""
        self._rates = np.array(rates, dtype=np.float64)
        self._rows, self._seconds = np.zeros(len(rates)), np.zeros(len(rates))  # of this window
        self._steps = 0
        self._ideal = 0.0  # seconds, of the windows before
        self._counted = 0
        self._longest = 0.0  # seconds of computing of each step's slowest rank

    def add(self, rows: IntArray, seconds: FloatArray) -> None:
        """Add one step: (ranks,) rows and own compute seconds; all 0 while they are not known."""
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
        """The least seconds that ranks of these speeds needed for `rows`: those of the added steps, and of a few more
        whose times are not known."""
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
        """The shares of `seconds` of training on `rows` rows: the `balanced` share, and the others by reason; none is
        below 0, and they add up to 1.

        `phases`: each rank's seconds by phase (clock.py). `checkpoints`: the first rank's seconds of checkpoints;
        `awaited`: those for which the others waited in the all-reduce of the next step.
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
            own = min(max(own, 0.0), left)  # work during a wait costs nothing
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
