"""Balancers of other systems, as their papers describe them, for comparison in the simulator.

Both adapt the ranks' rows between steps, as ours do. What is simplified is said.
"""

import numpy as np

from trainer.balancing.speed import TimeModel, fit_time_model
from trainer.balancing.split import FloatArray, IntArray, equal_finish_split, proportional_split

_NEWEST = 0.3
"""The weight of the newest speed in the mean by which the next is predicted."""


class SpeedBalancer:
    """LB-BSP for ranks without a fixed part (Chen et al. 2020, Semi-Dynamic Load Balancing): before each step shares in
    proportion to the predicted speeds. The paper predicts by a recurrent network that also sees the load of CPU and
    memory; here an exponential mean of the speeds predicts."""

    def __init__(self, *, ranks: int) -> None:
        self._speeds: FloatArray = np.ones(ranks)
        self._known = False

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        return proportional_split(total, self._speeds)

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Take in one step's rows and own compute seconds, (ranks,) each."""
        timed = (rows > 0) & (seconds > 0)
        newest = np.where(timed, rows / np.where(timed, seconds, 1.0), self._speeds)
        weight = _NEWEST if self._known else 1.0
        self._speeds = weight * newest + (1.0 - weight) * self._speeds
        self._known = self._known or bool(timed.any())


class EpochModelBalancer:
    """The way of Cannikin (Nie et al. 2024): each rank's time is a line in its rows, which is fitted to the means of
    epochs; rows are split once an epoch so that all finish together. The first epoch is equal, and the second in
    proportion to the speeds of the first, so that there are two points. Its adaptive global batch, and its model of
    communication that overlaps with computing, are left out: here nothing overlaps."""

    def __init__(self, *, ranks: int, every: int) -> None:
        """`every`: steps of an epoch."""
        self._every, self._steps = every, 0
        self._rows, self._seconds = np.zeros(ranks), np.zeros(ranks)
        self._points: list[list[tuple[float, float]]] = [[] for _ in range(ranks)]
        self._lines: list[TimeModel] = [TimeModel(0.0, 1.0)] * ranks

    def split(self, total: int) -> IntArray:
        """(ranks,): rows of each rank for a global batch of `total` rows."""
        fixed, per_row = np.array(self._lines, dtype=np.float64).T.copy()
        return equal_finish_split(total, fixed, per_row)

    def observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Take in one step's rows and own compute seconds, (ranks,) each."""
        self._rows += np.where(seconds > 0, rows, 0)
        self._seconds += seconds
        self._steps += 1
        if self._steps % self._every:
            return
        for rank, (count, spent) in enumerate(zip(self._rows.tolist(), self._seconds.tolist(), strict=True)):
            if count and spent:
                self._points[rank].append((count / self._every, spent / self._every))
                self._lines[rank] = fit_time_model(self._points[rank])
        self._rows[:], self._seconds[:] = 0, 0
