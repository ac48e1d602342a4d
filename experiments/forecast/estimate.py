"""A quantity that is predicted: its middle, and the range in which it is expected."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """Seconds, dollars, or any other amount."""

    low: float
    middle: float
    high: float

    @classmethod
    def about(cls, middle: float, off: float) -> "Estimate":
        """An amount that may be off by the factor 1 + `off`, to both sides."""
        return cls(middle / (1.0 + off), middle, middle * (1.0 + off))

    @classmethod
    def exact(cls, amount: float) -> "Estimate":
        """An amount that is known."""
        return cls(amount, amount, amount)

    def plus(self, other: "Estimate") -> "Estimate":
        """The sum, whose range is the worst case: errors may have one cause."""
        return Estimate(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, factor: "float | Estimate") -> "Estimate":
        """So many times as much; `factor` is at least 0, and the worst of both ranges add up."""
        factors = factor if isinstance(factor, Estimate) else Estimate.exact(factor)
        return Estimate(*(mine * theirs for mine, theirs in zip(self, factors, strict=True)))


def total(parts: list[Estimate]) -> Estimate:
    """The sum of all."""
    return Estimate(*map(sum, zip(*parts, strict=True))) if parts else Estimate.exact(0.0)
