"""Who computes which rows of a step: the ranks' shares (balancers.py), and what they claim besides (claims.py)."""

from collections.abc import Iterator

import numpy as np

from trainer.balancing.balancers import balancer
from trainer.balancing.claims import Claims, StepPlan
from trainer.config import BalanceOptions
from trainer.distributed import collectives
from trainer.distributed.exchange import Report
from trainer.distributed.ranks import Ranks, Store
from trainer.errors import TrainingError
from trainer.order import IntArray, Order

_KEY = "claimed"


class Sharing:
    """Plans each step, and learns from what all ranks are told of it: so all plan alike."""

    def __init__(self, config: BalanceOptions, ranks: Ranks, order: Order, rates: list[float]) -> None:
        """`rates` (ranks,): the ranks' own, in rows a second. Raises TrainingError on all ranks for a `config.balance`
        that is not for so many."""
        with ranks.agreement():
            try:
                self._balancer = balancer(
                    config.balance,
                    np.array(rates),
                    every=config.rebalance_every,
                    steps_per_epoch=order.steps,
                    total=order.size(0),
                )
            except ValueError as error:
                raise TrainingError(f"--balance {config.balance}: {error}") from error
        self._claims = Claims(enabled=config.balance == "steps" and ranks.device.type == "cpu")
        self._counter = ClaimCounter(ranks.store, ranks.from_first(ClaimCounter.now(ranks.store)))
        self._rank = ranks.rank

    def split(self, rows: int) -> IntArray:
        """(ranks,): how `rows` are shared out as speeds are now, without claims."""
        return self._balancer.split(rows)

    def plan(self, size: int) -> StepPlan:
        """Of the next step, whose global batch has `size` rows."""
        return self._claims.plan(self._balancer.split(size))

    def claimed(self, plan: StepPlan, where: str) -> Iterator[int]:
        """The numbers of the pieces that this rank claims, as `ClaimCounter.claimed` has them."""
        return self._counter.claimed(plan, self._rank, where)

    def observe(self, report: Report) -> None:
        """Take in what a step took its ranks."""
        self._balancer.observe(report.shares.rows, report.shares.seconds)
        self._claims.observe(report.shares)


class ClaimCounter:
    """Gives each piece of a step to one rank."""

    def __init__(self, store: Store, begin: int) -> None:
        """`begin`: where the counter is before the first step, the same on every rank."""
        self._store, self._begin = store, begin

    @staticmethod
    def now(store: Store) -> int:
        """Where the counter of ranks that were started with this store is."""
        return store.add(_KEY, 0)

    def claimed(self, plan: StepPlan, rank: int, where: str) -> Iterator[int]:
        """The numbers of the pieces that a rank claims, each at the time that it is asked for; all that claim have to
        go through to the end. Raises TrainingError when the other ranks are gone, with `where` the run was."""
        while plan.may_claim(rank):
            with collectives.reporting(where):
                number = self._store.add(_KEY, 1) - 1 - self._begin
            if number >= len(plan.pieces):
                break
            yield number
        self._begin += plan.numbers
