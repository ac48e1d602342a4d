"""Which topology to take: what fits the money and the time, and what no other beats in both."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from experiments.forecast.cluster import Prediction
from experiments.forecast.estimate import Estimate


class _Predicted(Protocol):
    @property
    def seconds(self) -> Estimate: ...

    @property
    def dollars(self) -> Estimate: ...


Predicted = TypeVar("Predicted", bound=_Predicted)


def fitting(
    predictions: Sequence[Predicted], *, most_dollars: float | None, most_hours: float | None
) -> list[Predicted]:
    """Those whose middle is within the limits, the cheapest first, of equally cheap ones the fastest."""
    found = [
        each
        for each in predictions
        if (most_dollars is None or each.dollars.middle <= most_dollars)
        and (most_hours is None or each.seconds.middle <= 3600 * most_hours)
    ]
    return sorted(found, key=lambda each: (each.dollars.middle, each.seconds.middle))


def pareto_front(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Those that no other beats: no other is as cheap and as fast, and better in one of them; the cheapest first."""
    front: list[Prediction] = []
    for each in sorted(predictions, key=lambda one: (one.dollars.middle, one.seconds.middle)):
        if not front or each.seconds.middle < front[-1].seconds.middle:
            front.append(each)
    return front
