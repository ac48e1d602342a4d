"""What the time of training went to: what ranks of the speeds that they had needed at least, and what came on top.

The speeds are those of the run itself. A rank's rate is its rows over its own seconds of computing, in a window of
steps; a window's ideal is its rows over the sum of the rates, as if all ranks had computed all the time and nothing
else. The easy mistake is to take the rates of single steps: what is a step's noise would then be speed, and the ideal
one that only knowing each step beforehand reaches. Over a window noise averages out, and a rank that changes its speed
is in two or three of them what it is on average.

Of the rest, the ranks that are done with a step wait for the last one (imbalance), all of them for the sum of their
gradients (communication) and for the numbers of the next rows (data), and for the first rank's checkpoints. Most of a
rank's time in the all-reduce is the wait for slower ranks. What counts is the rank that spends least in all-reduces,
the last to arrive as a rule, less its wait for ranks that compute longer. That is summed up over steps: ranks do not
leave an all-reduce together, and who leaves one late is short of time in the next.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from trainer.clock import ALL_REDUCE, CLAIM, COMPUTE, ORDER

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_WINDOW = 10
"""Steps that a rank's rate is taken over. Noise of a tenth of a step's time then moves the ideal by a thousandth."""


class Efficiency:
    """Adds up the steps since a run was started."""

    def __init__(self, rates: Sequence[float]) -> None:
        """`rates` (ranks,): rows a second before the first step; a rank's counts until it has had rows."""
        self._rates = np.array(rates, dtype=np.float64)
        self._rows, self._seconds = np.zeros(len(rates)), np.zeros(len(rates))  # of this window
        self._steps = 0
        self._ideal = 0.0  # seconds, of the windows before
        self._counted = 0
        self._longest = 0.0  # seconds of computing of each step's slowest rank

    def add(self, rows: IntArray, seconds: FloatArray) -> None:
        """One step: (ranks,) rows and seconds of own computing; all 0 where they are not known yet."""
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
        """The least that ranks of these speeds needed for `rows`, those of the steps that were added, and of a few
        more whose times are not known."""
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
        """Of `seconds` of training on `rows` rows: the share that was `balanced`, and the others by reason; none is
        below 0, and they add up to 1.

        `phases`: each rank's seconds by phase (clock.py). `checkpoints`: what they took the first rank; of that,
        `awaited` by the others in the all-reduce of the next step.
        """
        reducing = np.array([spent.get(ALL_REDUCE, 0.0) for spent in phases])
        reducing[1:] -= awaited
        last = phases[int(np.argmin(reducing))]
        longest, ideal = self._longest * self._scale(rows), self.ideal_seconds(rows)
        wait = longest - sum(last.get(phase, 0.0) for phase in COMPUTE)
        spent = {
            "balanced": ideal,
            "imbalance": longest - ideal,
            "communication": float(reducing.min()) - wait + last.get(CLAIM, 0.0),
            "data": last.get(ORDER, 0.0),
            "checkpoints": checkpoints,
        }
        left, shares = seconds, {}
        for reason, own in spent.items():
            own = min(max(own, 0.0), left)  # what a rank did while it would have waited anyway cost nothing
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
