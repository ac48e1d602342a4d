"""Which rank computes which rows of a step: the ranks' shares (balancers.py), and the pieces that they claim
(claims.py).
"""

from collections.abc import Iterator

import numpy as np

from trainer.balancing.balancers import make_balancer
from trainer.balancing.claims import ClaimPlanner, StepPlan
from trainer.config import BalanceOptions
from trainer.distributed import collectives
from trainer.distributed.exchange import StepReport
from trainer.distributed.ranks import Ranks, Store
from trainer.errors import TrainingError
from trainer.order import BatchOrder, IntArray

_KEY = "claimed"


class StepPlanner:
    """Plans each step, and learns from the reports of steps. All ranks get the same reports, so all plan alike."""

    def __init__(
        self, config: BalanceOptions, ranks: Ranks, order: BatchOrder, rates: list[float], *, claims: bool
    ) -> None:
        """`rates` (ranks,): the ranks' own, in rows per second. `claims`: whether ranks can claim rows. Raises
        TrainingError on all ranks if `config.balance` does not fit the number of ranks."""
        with ranks.agreement():
            try:
                self._balancer = make_balancer(
                    config.balance,
                    np.array(rates),
                    every=config.rebalance_every,
                    steps_per_epoch=order.steps,
                    total=order.size(0),
                )
            except ValueError as error:
                raise TrainingError(f"--balance {config.balance}: {error}") from error
        useful = ranks.world_size > 1 and ranks.device.type == "cpu"
        self._claims = ClaimPlanner(enabled=claims and config.balance == "steps" and useful)
        self._counter = ClaimCounter(ranks.store, ranks.broadcast(ClaimCounter.position(ranks.store)))
        self._rank = ranks.rank

    def split(self, rows: int) -> IntArray:
        """(ranks,): `rows` split by the present speeds, without claims."""
        return self._balancer.split(rows)

    def plan(self, size: int) -> StepPlan:
        """The plan of the next step, whose global batch has `size` rows."""
        return self._claims.plan(self._balancer.split(size))

    def claim_pieces(self, plan: StepPlan, where: str) -> Iterator[int]:
        """Yield the numbers of the pieces that this rank claims (`ClaimCounter.claim_pieces`)."""
        return self._counter.claim_pieces(plan, self._rank, where)

    def observe(self, report: StepReport) -> None:
        """Learn from the report of a step."""
        self._balancer.observe(report.shares.rows, report.shares.seconds)
        self._claims.observe(report.shares)


class ClaimCounter:
    """Gives each piece of a step to one rank, by one counter for the whole run.

    A counter for each step would have to be created and cleared at a time that suits all ranks. Each rank that may
    claim asks until no piece is left, so a step moves the counter by its pieces and by one for each of these ranks,
    which all ranks know.
    """

    def __init__(self, store: Store, begin: int) -> None:
        """`begin`: the counter before the first step, the same on every rank."""
        self._store, self._begin = store, begin

    @staticmethod
    def position(store: Store) -> int:
        """The present value of the counter in this store."""
        return store.add(_KEY, 0)

    def claim_pieces(self, plan: StepPlan, rank: int, where: str) -> Iterator[int]:
        """Yield the numbers of the pieces that `rank` claims, each at the time that it is asked for; every rank that
        claims has to iterate to the end. Raises TrainingError, with `where` the run was, if the other ranks are gone.
        """
        while plan.may_claim(rank):
            with collectives.convert_errors(where):
                number = self._store.add(_KEY, 1) - 1 - self._begin
            if number >= len(plan.pieces):
                break
            yield number
        self._begin += plan.counter_steps
