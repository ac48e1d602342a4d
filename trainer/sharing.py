"""Who computes which rows of a step: the ranks' shares (balance.py), and what they claim besides (claims.py)."""

from collections.abc import Iterator

import numpy as np

from trainer.balance import balancer
from trainer.claims import Claims, Counter, StepPlan
from trainer.config import BalanceOptions
from trainer.errors import TrainingError
from trainer.exchange import Report
from trainer.order import IntArray, Order
from trainer.ranks import Ranks


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
        self._counter = Counter(ranks.store, ranks.from_first(Counter.now(ranks.store)))
        self._rank = ranks.rank

    def split(self, rows: int) -> IntArray:
        """(ranks,): how `rows` are shared out as speeds are now, without claims."""
        return self._balancer.split(rows)

    def plan(self, size: int) -> StepPlan:
        """Of the next step, whose global batch has `size` rows."""
        return self._claims.plan(self._balancer.split(size))

    def claimed(self, plan: StepPlan, where: str) -> Iterator[int]:
        """The numbers of the pieces that this rank claims, as `Counter.claimed` has them."""
        return self._counter.claimed(plan, self._rank, where)

    def observe(self, report: Report) -> None:
        """Take in what a step took its ranks."""
        self._balancer.observe(report.shares.rows, report.shares.seconds)
        self._claims.observe(report.shares)
