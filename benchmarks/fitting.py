"""A straight line through times by size, and how far they lie from it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Line:
    """`start` + `slope` * GB, by least squares of relative residuals."""

    start: float
    slope: float
    residuals: tuple[float, ...]
    """(measured - fitted) ÷ fitted, in the order of the measurements."""

    @property
    def scatter(self) -> str:
        """The residuals from the smallest to the largest, in percent."""
        return f"{100 * min(self.residuals):+.1f}% to {100 * max(self.residuals):+.1f}%"

    def at(self, gigabytes: float) -> float:
        """The value at a size."""
        return self.start + self.slope * gigabytes


def fit_line(gigabytes: Sequence[float], values: Sequence[float]) -> Line:
    """The line through some measurements; weighted by 1 ÷ value, as times scatter in proportion to themselves."""
    x, y = np.array(gigabytes), np.array(values)
    slope, start = np.polyfit(x, y, 1, w=1 / y)
    fitted = start + slope * x
    return Line(float(start), float(slope), tuple(float(r) for r in (y - fitted) / fitted))
