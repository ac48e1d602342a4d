"""Estimated quantities: a middle, and a range that probably includes the true value."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

_UNITS = (("seconds", 1.0, 90.0), ("minutes", 60.0, 90.0 * 60.0), ("hours", 3600.0, float("inf")))
"""Units of time: the name, the length in seconds, and the number of seconds below which the unit is used."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of an amount that is at least 0, such as seconds or dollars.

    The range of a result combines the worst ends of the operands' ranges, because their errors can have a common cause.
    """

    low: float
    middle: float
    high: float

    @classmethod
    def about(cls, middle: float, off: float) -> Self:
        """Return an estimate with the range from `middle` / (1 + `off`) to `middle` * (1 + `off`)."""
        return cls(middle / (1.0 + off), middle, middle * (1.0 + off))

    @classmethod
    def exact(cls, amount: float) -> Self:
        return cls(amount, amount, amount)

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def __mul__(self, factor: "float | Estimate") -> "Estimate":
        other = factor if isinstance(factor, Estimate) else Estimate.exact(factor)
        return Estimate(self.low * other.low, self.middle * other.middle, self.high * other.high)

    __rmul__ = __mul__

    def __truediv__(self, divisor: "float | Estimate") -> "Estimate":
        other = divisor if isinstance(divisor, Estimate) else Estimate.exact(divisor)
        return Estimate(self.low / other.high, self.middle / other.middle, self.high / other.low)

    def __rtruediv__(self, amount: float) -> "Estimate":
        return Estimate.exact(amount) / self

    def at_most(self, most: float) -> "Estimate":
        """Return the estimate, with its middle and range limited to `most`."""
        return Estimate(min(self.low, most), min(self.middle, most), min(self.high, most))

    def time(self) -> str:
        """Format seconds with their range, in a suitable unit: `2.5 hours (1.5 to 4.0)`."""
        if self.high < 1:
            return "under a second"
        unit, size, _ = next(each for each in _UNITS if self.middle < each[2])
        return f"{_rounded(self.middle / size)} {unit}{self._range(lambda amount: _rounded(amount / size))}"

    def dollars(self) -> str:
        """Format dollars with their range."""
        return f"${self.middle:,.2f}{self._range(lambda amount: f'{amount:,.2f}')}"

    def _range(self, form: Callable[[float], str]) -> str:
        return "" if self.low == self.high else f" ({form(self.low)} to {form(self.high)})"


NOTHING = Estimate.exact(0.0)


def total(parts: Iterable[Estimate]) -> Estimate:
    return sum(parts, NOTHING)


def _rounded(number: float) -> str:
    """Format a number with no more digits than an estimate justifies."""
    return f"{number:,.1f}" if number < 10 else f"{number:,.0f}"
