"""A training on modelled ranks: each step as long as its slowest rank, the sum over all of them, and what goes wrong.

The order of the rows has as many steps as in a training, and the balancers are the trainer's own; only the clock is
modelled. Do not compare a simulated time with a real one to the second: the rates that it is given decide.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trainer.balancing.balancers import Balancer
from trainer.balancing.speed import TimeModel
from trainer.balancing.split import FloatArray, IntArray
from trainer.order import BatchOrder

_LATE = 1
"""Steps after which a step's times are known to the balancer, as in the trainer on CPUs; at the end of an epoch all
are known."""
_BACKWARD = 2 / 3
"""The share of a step's computing in which gradients come to be: a backward pass has twice a forward pass's
operations."""


@dataclass(frozen=True, kw_only=True)
class Troubles:
    """What goes wrong."""

    jitter: float = 0.03
    """The standard deviation of a rank's time from step to step, as a share of it."""
    stragglers: float = 0.0
    """How many times an hour a rank becomes slow."""
    straggler_factor: float = 3.0
    """By so much."""
    straggler_seconds: float = 60.0
    """For so long."""
    failures: float = 0.0
    """How many times an hour a rank is lost, and all go on from the latest checkpoint."""
    restart_seconds: float = 90.0
    """From a loss to the next step: another node, and the start of the ranks."""
    checkpoint_seconds: float = 0.5
    checkpoint_minutes: float = 5.0


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Modelled ranks, and what connects and troubles them."""

    lines: Sequence[TimeModel]
    """Each rank's own seconds for a step of so many rows."""
    all_reduce: float = 0.0
    """Seconds in which the ranks add up their gradients."""
    overlapping: bool = False
    """Whether they do so while they compute the gradients of the first layers."""
    others: TimeModel
    """What a step takes besides, by the rows of the global batch."""
    troubles: Troubles


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """The seconds of a simulated training, by what they were spent on."""

    ideal: float
    """Ranks of these speeds that always compute."""
    waiting: float
    """For the slowest rank of each step."""
    all_reduce: float
    """Beyond the computing with which it overlaps."""
    others: float
    checkpoints: float
    lost: float
    """Steps that had to be repeated, and restarts."""
    failures: int
    steps: int
    rows: int

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.ideal + self.waiting + self.all_reduce + self.others + self.checkpoints + self.lost

    @property
    def efficiency(self) -> float:
        """The share of the time in which ranks computed what counts."""
        return self.ideal / self.seconds


def simulate(
    cluster: Cluster,
    make_balancer: Callable[[FloatArray], Balancer],
    order: BatchOrder,
    *,
    epochs: int,
    seed: int = 0,
) -> Simulated:
    """Train on modelled ranks. `make_balancer`: makes it from the ranks' rates (ranks,), in rows a second at equal
    shares."""
    lines, troubles = cluster.lines, cluster.troubles
    generator = np.random.default_rng(seed)
    fixed, per_row = np.array(lines, dtype=np.float64).T.copy()
    share = order.size(0) / len(lines)
    balancer = make_balancer(share / (fixed + per_row * share))
    hidden = _BACKWARD if cluster.overlapping else 0.0
    slow_until = np.full(len(lines), -1.0)
    clock = saved_at = 0.0
    sums = dict.fromkeys(("ideal", "waiting", "all_reduce", "others", "checkpoints", "lost"), 0.0)
    failures = rows = 0
    late: list[tuple[IntArray, FloatArray]] = []
    total = epochs * order.steps
    for step in range(total):
        size = order.size(step % order.steps)
        split = balancer.split(size)
        noise = np.maximum(0.3, generator.normal(1.0, troubles.jitter, len(lines)))
        begins = generator.random(len(lines)) < troubles.stragglers * (share * per_row + fixed) / 3600
        slow_until[begins] = clock + troubles.straggler_seconds
        slowness = np.where(slow_until > clock, troubles.straggler_factor, 1.0)
        own = np.where(split > 0, (fixed + per_row * split) * slowness, 0.0)
        seconds = own * noise
        finish = float(seconds.max())
        reducing, others = max(0.0, cluster.all_reduce - hidden * finish), cluster.others.seconds(size)
        spent = finish + reducing + others
        at_work = split > 0
        ideal = size / float((split[at_work] / own[at_work]).sum())
        sums["ideal"] += min(ideal, finish)
        sums["waiting"] += max(0.0, finish - ideal)
        sums["all_reduce"] += reducing
        sums["others"] += others
        late.append((split, seconds))
        while len(late) > (_LATE if (step + 1) % order.steps else 0):
            balancer.observe(*late.pop(0))
        clock += spent
        rows += size
        if generator.random() < -math.expm1(-troubles.failures * len(lines) * spent / 3600):
            failures += 1
            lost = clock - saved_at
            sums["lost"] += lost + troubles.restart_seconds
            clock += lost + troubles.restart_seconds  # the same steps again take as long
            saved_at = clock - lost
        if clock - saved_at > 60 * troubles.checkpoint_minutes:
            sums["checkpoints"] += troubles.checkpoint_seconds
            clock += troubles.checkpoint_seconds
            saved_at = clock
    return Simulated(**sums, failures=failures, steps=total, rows=rows)
