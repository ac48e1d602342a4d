"""A rank's speed: its time for a step as a line in its rows, fitted to the times that were measured.

`fixed` is what every step costs, `per_row` what every row costs. The sums are the same on every processor (split.py).
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

STALL = 1.2
"""A time that is so many times what the fit predicts, when the fit is scaled to the median of all, is no part of it:
something held the rank up. Noise of 5% reaches so far once in 30,000 times. Times err upwards alone, so those far below
the median are kept."""

TRUST_IN_PROPORTION = 0.05
"""How firmly the fit holds on to a fixed part of 0, as a share of the weight of all observations, while the row counts
seen are too alike to tell the parts from each other: a sixth of the fixed part is found where their standard deviation
is 10% of their mean, half at 23%. Near the row counts that were seen the line is right all the same."""


class Line(NamedTuple):
    """Seconds of a step with `rows` rows: fixed + per_row * rows."""

    fixed: float
    """At least 0."""
    per_row: float
    """Above 0."""

    def seconds(self, rows: float) -> float:
        """What a step with so many rows takes."""
        return self.fixed + self.per_row * rows


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """The line through `points`, (rows, seconds) each, both above 0.

    A line that is drawn towards a fixed part of 0: with only one row count seen, time is taken as proportional to rows.
    It is robust to outliers: it goes through the medians of the observations with equal rows, and goes a second time
    without those that are far above it. Those of few rows stay: what is above a line through the origin there is the
    fixed part.
    """
    line = _ridge(points)
    ratios = [time / line.seconds(count) for count, time in points]
    most, few = STALL * median(ratios), median([count for count, _ in points]) / 2
    return _ridge([point for point, ratio in zip(points, ratios, strict=True) if ratio <= most or point[0] < few])


def _ridge(points: Sequence[tuple[float, float]]) -> Line:
    """By least squares with a penalty on the fixed part (ridge regression), of the medians by rows."""
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
    return Line(a * time_unit, b * time_unit / row_unit)
