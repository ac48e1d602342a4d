"""Which ranks compute much slower than others of their kind: a GPU that throttles, a processor that others use, too.

A balancer gives a slow rank fewer rows, and so hides it. All ranks find the same, because they observe the same.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

WINDOW_SECONDS, WINDOWS = 5.0, 3
"""A rank is slow that was so in several windows in turn, each of so many seconds of computing of its busiest rank."""
SLOW = 0.7
"""The share of the median rate of the others of its kind below which a rank is slow."""


class Slow(NamedTuple):
    rank: int
    share: float
    """Of the median rate of the others of its kind, in the latest window."""


class SlowRanks:
    def __init__(self, kinds: Sequence[object]) -> None:
        """`kinds` (ranks,): equal for ranks that should be equally fast."""
        of_kind = defaultdict[object, list[int]](list)
        for rank, kind in enumerate(kinds):
            of_kind[kind].append(rank)
        self._others = {rank: [each for each in of_kind[kind] if each != rank] for rank, kind in enumerate(kinds)}
        self._compares = any(self._others.values())
        self._rows, self._seconds = np.zeros(len(kinds)), np.zeros(len(kinds))
        self._slow_windows = np.zeros(len(kinds), dtype=int)

    def observe(self, rows: npt.NDArray[np.int64], seconds: npt.NDArray[np.float64]) -> list[Slow]:
        """Add what the ranks (ranks,) computed in a step; returns those that have been slow for exactly WINDOWS."""
        if not self._compares:
            return []
        timed = (rows > 0) & (seconds > 0)
        self._rows += np.where(timed, rows, 0)
        self._seconds += np.where(timed, seconds, 0.0)
        if self._seconds.max() < WINDOW_SECONDS:
            return []
        rates = np.divide(self._rows, self._seconds, out=np.zeros_like(self._rows), where=self._seconds > 0)
        self._rows[:] = self._seconds[:] = 0
        shares = {rank: self._share(rank, rates) for rank in self._others}
        for rank, share in shares.items():
            self._slow_windows[rank] = self._slow_windows[rank] + 1 if share < SLOW else 0
        return [Slow(rank, share) for rank, share in shares.items() if self._slow_windows[rank] == WINDOWS]

    def _share(self, rank: int, rates: npt.NDArray[np.float64]) -> float:
        """Of the median of the others; 1 where nothing can be compared."""
        others = [float(rates[each]) for each in self._others[rank] if rates[each] > 0]
        return float(rates[rank]) / median(others) if others and rates[rank] > 0 else 1.0
