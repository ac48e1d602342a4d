"""Balancers beside each other on one simulated cluster, with the same troubles, and clusters of growing size."""

from collections.abc import Callable, Sequence

from experiments.simulation.cluster import Cluster, Simulated, simulate
from experiments.simulation.published import EpochModelBalancer, SpeedBalancer
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


def compare(
    cluster: Cluster,
    balancers: Sequence[str],
    order: BatchOrder,
    *,
    epochs: int,
    seed: int,
    progress: Callable[[int], None],
) -> dict[str, Simulated]:
    """The simulated trainings by balancer; `progress` is called with the steps done of all."""
    found = {}
    for number, how in enumerate(balancers):
        before = number * epochs * order.steps

        def show(steps: int, before: int = before) -> None:
            progress(before + steps)

        found[how] = simulate(cluster, balancer_maker(how, order), order, epochs=epochs, seed=seed, progress=show)
    return found


def growing(most: int) -> list[int]:
    """1, 2, 4, ... and `most`."""
    return [*(1 << power for power in range((most - 1).bit_length())), most]


def largest_loss(found: Simulated) -> str:
    """What took most of the time in which no rows were computed that count; all-reduce, for example."""
    losses = {
        "waiting": found.waiting,
        "all-reduce": found.all_reduce,
        "others": found.others,
        "checkpoints": found.checkpoints,
        "lost": found.lost,
    }
    return max(losses, key=losses.__getitem__)
