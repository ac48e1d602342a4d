"""Model of a rank's speed: the time of a step as a line in its rows, fitted to measured times.

`fixed` is the time of every step, `per_row` the time of every row. The arithmetic must give the same bits on every
processor (split.py).
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

STALL = 1.2
"""Factor above the fit's prediction, scaled to the median of all ratios, from which a time is excluded as a stall. With
noise of 5%, one time in 30,000 is so large. Delays only increase times, so times far below the median stay."""

TRUST_IN_PROPORTION = 0.05
"""Weight of the penalty on the fixed part, as a share of the weight of all observations. It matters while the observed
row counts are too similar to separate both parts. The fit finds a sixth of the fixed part if their standard deviation
is 10% of their mean, and half at 23%. Near the observed row counts the line is right in any case."""


class TimeModel(NamedTuple):
    """Seconds of a step with `rows` rows: fixed + per_row * rows."""

    fixed: float
    """Seconds of every step, at least 0."""
    per_row: float
    """Seconds of every row, above 0."""

    def seconds(self, rows: float) -> float:
        """Return the predicted seconds of a step with `rows` rows."""
        return self.fixed + self.per_row * rows


def fit_time_model(points: Sequence[tuple[float, float]]) -> TimeModel:
    """Fit a line to `points`, (rows, seconds) each, both above 0.

    A penalty draws the fixed part towards 0. So with a single row count, time is proportional to rows.

    The fit is robust to outliers. It uses the medians of observations with equal rows, and is repeated without
    observations far above the line. Observations with few rows always stay, because there the fixed part dominates.
    """
    line = _ridge(points)
    ratios = [time / line.seconds(count) for count, time in points]
    most, few = STALL * median(ratios), median([count for count, _ in points]) / 2
    return _ridge([point for point, ratio in zip(points, ratios, strict=True) if ratio <= most or point[0] < few])


def _ridge(points: Sequence[tuple[float, float]]) -> TimeModel:
    """Fit by least squares with a penalty on the fixed part (ridge regression), on the medians by row count."""
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
    determinant = weight * xx - x * x  # above 0, because the penalty is
    a, b = (xx * y - x * xy) / determinant, (weight * xy - x * y) / determinant
    if a < 0 or b <= 0:
        a, b = 0.0, xy / xx
    return TimeModel(a * time_unit, b * time_unit / row_unit)
