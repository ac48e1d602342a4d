"""A rank's speed: the time of a step as a line in its rows, fitted to measured times.

`fixed` is the cost of every step, `per_row` the cost of every row. The sums are the same on every processor (split.py).
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

STALL = 1.2
"""A time that is so many times the fit's prediction, with the fit scaled to the median of all, is excluded: something
delayed the rank. With noise of 5%, one time in 30,000 is so large. Times err only upwards, so times far below the
median are kept."""

TRUST_IN_PROPORTION = 0.05
"""How strongly the fit is shrunk towards a fixed part of 0, as a share of the weight of all observations, while the
observed row counts are too similar to separate the two parts: a sixth of the fixed part is found where their standard
deviation is 10% of their mean, half at 23%. Near the observed row counts the line is right all the same."""


class TimeModel(NamedTuple):
    """Seconds of a step with `rows` rows: fixed + per_row * rows."""

    fixed: float
    """At least 0."""
    per_row: float
    """Above 0."""

    def seconds(self, rows: float) -> float:
        """The predicted seconds of a step with `rows` rows."""
        return self.fixed + self.per_row * rows


def fit_time_model(points: Sequence[tuple[float, float]]) -> TimeModel:
    """The line through `points`, (rows, seconds) each, both above 0.

    The line is drawn towards a fixed part of 0: with only one row count, time is proportional to rows. It is robust to
    outliers: it is fitted to the medians of observations with equal rows, and then again without observations far above
    it. Observations of few rows stay: what is above a line through the origin there is the fixed part.
    """
    line = _ridge(points)
    ratios = [time / line.seconds(count) for count, time in points]
    most, few = STALL * median(ratios), median([count for count, _ in points]) / 2
    return _ridge([point for point, ratio in zip(points, ratios, strict=True) if ratio <= most or point[0] < few])


def _ridge(points: Sequence[tuple[float, float]]) -> TimeModel:
    """Least squares with a penalty on the fixed part (ridge regression), on the medians by row count."""
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
    determinant = weight * xx - x * x  # above 0, as the penalty is
    a, b = (xx * y - x * xy) / determinant, (weight * xy - x * y) / determinant
    if a < 0 or b <= 0:
        a, b = 0.0, xy / xx
    return TimeModel(a * time_unit, b * time_unit / row_unit)
