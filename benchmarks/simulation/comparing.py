"""What is compared: the trainer's own balancers and those of other systems, and clusters of growing size."""

from collections.abc import Callable

from benchmarks.simulation.published import EpochModelBalancer, SpeedBalancer
from trainer.balancing.balancers import Balancer, make_balancer
from trainer.balancing.split import FloatArray
from trainer.order import BatchOrder

PUBLISHED = ("lb-bsp", "cannikin")
"""The balancers of other systems."""
_EVERY = 10
"""Steps between rebalances, as in a training by default."""


def balancer_maker(how: str, order: BatchOrder) -> Callable[[FloatArray], Balancer]:
    """What makes the balancer that `how` names: one of PUBLISHED, or as `--balance` of a training.

    Raises ValueError, when it is called, for a `how` that is neither.
    """

    def made(rates: FloatArray) -> Balancer:
        if how == "lb-bsp":
            return SpeedBalancer(ranks=len(rates))
        if how == "cannikin":
            return EpochModelBalancer(ranks=len(rates), every=order.steps)
        return make_balancer(how, rates, every=_EVERY, steps_per_epoch=order.steps, total=order.size(0))

    return made


def growing(most: int) -> list[int]:
    """1, 2, 4, ... and `most`."""
    return [*(1 << power for power in range((most - 1).bit_length())), most]
