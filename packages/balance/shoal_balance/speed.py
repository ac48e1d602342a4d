"""Model of a rank's speed: the time of a step as a linear function of its number of rows, fitted to measured times.

A step takes `fixed` seconds, and `per_row` seconds more for each row. The arithmetic must give the same bits on every
processor (see split.py).
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

STALL = 1.2
"""Limit for stalls: a time is excluded if its ratio to the predicted time is above STALL times the median ratio. With
noise of 5%, one step in 30,000 takes so long. Short times are never excluded, because delays only increase times."""

TRUST_IN_PROPORTION = 0.05
"""Weight of the penalty on `fixed`, relative to the weight of all observations. The penalty matters only while the
observed row counts are too similar to separate `fixed` from `per_row`. If the standard deviation of the row counts is
10% of their mean, the fit finds a sixth of the true fixed time. If it is 23%, the fit finds half of the fixed time.
Near the observed row counts the predictions are right in any case."""


class TimeModel(NamedTuple):
    """Seconds of a step with `rows` rows: fixed + per_row * rows."""

    fixed: float
    """Seconds for each step, at least 0."""
    per_row: float
    """Seconds for each row, above 0."""

    def seconds(self, rows: float) -> float:
        """Return the predicted seconds of a step with `rows` rows."""
        return self.fixed + self.per_row * rows


def fit_time_model(points: Sequence[tuple[float, float]]) -> TimeModel:
    """Fit a TimeModel to `points`: pairs of rows and seconds, both above 0.

    A penalty draws `fixed` towards 0. So if all points have the same number of rows, the predicted time is proportional
    to the rows.

    The fit is robust to outliers. It uses the median time for each number of rows, and is repeated without times far
    above the fitted line. Times for few rows are never excluded, because `fixed` dominates them.
    """
    line = _ridge(points)
    ratios = [time / line.seconds(count) for count, time in points]
    most, few = STALL * median(ratios), median([count for count, _ in points]) / 2
    return _ridge([point for point, ratio in zip(points, ratios, strict=True) if ratio <= most or point[0] < few])


def _ridge(points: Sequence[tuple[float, float]]) -> TimeModel:
    """Fit by ridge regression: least squares over the median time of each row count, with a penalty on `fixed`."""
    by_rows = defaultdict[float, list[float]](list)
    for count, time in points:
        by_rows[count].append(time)
    medians = [(count, median(times), len(times)) for count, times in by_rows.items()]
    row_unit = math.fsum(weight * count for count, _, weight in medians) / len(points)
    time_unit = math.fsum(weight * time for _, time, weight in medians) / len(points)
    scaled = [(count / row_unit, time / time_unit, weight) for count, time, weight in medians]
    x, xx = math.fsum(w * x for x, _, w in scaled), math.fsum(w * x * x for x, _, w in scaled)
    y, xy = math.fsum(w * y for _, y, w in scaled), math.fsum(w * x * y for x, y, w in scaled)
    weight = (1 + TRUST_IN_PROPORTION) * len(points)
    determinant = weight * xx - x * x  # positive, because the penalty is positive
    a, b = (xx * y - x * xy) / determinant, (weight * xy - x * y) / determinant
    if a < 0 or b <= 0:
        a, b = 0.0, xy / xx
    return TimeModel(a * time_unit, b * time_unit / row_unit)
