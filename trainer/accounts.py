"""What a run's share of ideal was lost to: the ranks' idle time by phase, in shares that add up.

The ideal is the sum of the ranks' own rates. At each step the ranks that are done wait for the last one (imbalance),
all of them for the sum of their gradients (communication) and for the numbers of the next rows (data). The easy mistake
is to take a rank's time in the all-reduce for communication: most of it is the wait for slower ranks. What counts is
the rank that spends least in all-reduces, the last to arrive as a rule, less its wait for ranks that compute longer.
That is summed up over steps: ranks do not leave an all-reduce together, and who leaves one late is short of time in
the next.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Accounts:
    """Adds up idle time over steps."""

    def __init__(self, ranks: int) -> None:
        self._idle = np.zeros(ranks)  # seconds behind the last rank, a rank
        self._reducing = np.zeros(ranks)  # seconds in the all-reduce, a rank

    def add(self, computing: FloatArray, reducing: FloatArray) -> None:
        """One step: (ranks,) seconds of own computing and in the all-reduce; 0 where they are not known yet."""
        self._idle += computing.max() - computing
        self._reducing += reducing

    def lost(self, *, seconds: float, share: float, rates: Sequence[float], ordering: float) -> dict[str, float]:
        """The share of ideal that was lost in `seconds` of training, by reason; with `share` they add up to 1.

        `rates` (ranks,) are the ranks' own, and `ordering` the seconds that choosing rows took.
        """
        weights = np.array(rates) / sum(rates)
        last = int(np.argmin(self._reducing))
        lost = {
            "imbalance": float(self._idle @ weights) / seconds,
            "communication": max(0.0, float(self._reducing[last] - self._idle[last])) / seconds,
            "data": ordering / seconds,
        }
        return {**lost, "rest": 1.0 - share - sum(lost.values())}
