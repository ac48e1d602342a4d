"""Schedule of splits: the split of each step, when some ranks draw batches many steps before they compute them."""

from collections.abc import Sequence

import numpy as np

from shoal_balance.balancers import StepBalancer
from shoal_balance.order import BatchOrder
from shoal_balance.split import FloatArray, IntArray, bounded, proportional_split


class SplitSchedule:
    """Splits of the steps of a training run, the same on every rank.

    A new split applies from the first step that no rank has drawn yet.
    """

    def __init__(self, order: BatchOrder, most: IntArray, *, every: int) -> None:
        """`most` (ranks,): the largest number of rows for each rank. `every`: the number of steps between rebalances.

        The first splits are equal.
        """
        self._order, self._most, self._every = order, most, every
        self.restart([1] * len(most))

    def restart(self, weights: Sequence[float]) -> None:
        """Forget all observations, and split rows in proportion to `weights` (ranks,) from now on."""
        self._balancer: StepBalancer | None = None
        shares = np.array(weights, np.float64)
        splits = {size: bounded(proportional_split(size, shares), self._most) for size in self._sizes}
        self._decisions = [(0, splits)]

    def split(self, number: int, size: int) -> IntArray:
        """Return the number of rows for each rank, (ranks,), in step `number` with a global batch of `size` rows."""
        return next(splits for begin, splits in reversed(self._decisions) if begin <= number)[size]

    @property
    def shares(self) -> list[int]:
        """Number of rows for each rank in a full global batch, after the latest rebalance."""
        rows: list[int] = self._decisions[-1][1][self._order.global_batch].tolist()
        return rows

    def rebalance(self, rows: IntArray, seconds: FloatArray, *, done: int, begin: int) -> None:
        """Choose new splits from the rows and compute seconds of the ranks in the last steps, (ranks, steps) each.

        `done`: the number of steps that were taken. `begin`: the first step that no rank has drawn yet.
        """
        for step in range(rows.shape[1]):
            self._observe(rows[:, step], seconds[:, step])
        if self._balancer is None:
            return
        splits = {size: bounded(self._balancer.split(size), self._most) for size in self._sizes}
        current = max(at for at, (first, _) in enumerate(self._decisions) if first <= done)
        self._decisions = [*self._decisions[current:], (begin, splits)]

    def _observe(self, rows: IntArray, seconds: FloatArray) -> None:
        """Record each rank's number of rows and compute time in one step, (ranks,) each.

        Create the balancer at the first step for which the times of all ranks are known.
        """
        if self._balancer is None:
            if not (seconds > 0).all() or not (rows > 0).all():
                return
            self._balancer = StepBalancer(rates=rows / seconds, every=self._every, total=self._order.global_batch)
        self._balancer.observe(rows, seconds)

    @property
    def _sizes(self) -> set[int]:
        """Sizes of the global batches."""
        return {self._order.size(0), self._order.size(self._order.steps - 1), self._order.global_batch}
