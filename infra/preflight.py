"""Finds errors and unintended costs in a topology, without calls to AWS.

A rule is a function that yields one message for each problem. A rule must never raise, because `cdk destroy` reads the
same topologies. The findings apply only to AWS. They do not stop a deployment to the emulator, which also runs retired
instance types.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from infra import catalog, cost
from infra.topology import Topology

Level = Literal["error", "warning"]

_SHORTEST_RUN_MINUTES = 10


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Problem that a rule found. If it is an error, it stops the deployment. `sentence` is the message for the user."""

    level: Level
    rule: str
    sentence: str


def retired_type(topology: Topology) -> Iterator[str]:
    """Yield a problem for each field with an instance type that AWS no longer starts."""
    cluster = topology.preprocessing.groups if topology.preprocessing else ()
    named = [(f"preprocessing, {role}", name) for role, name, _, _ in cluster]
    for number, group in enumerate(topology.training, 1):
        named += [(f"training {number} ({group.name})", name) for name in group.types]
    for field, name in named:
        if retired := catalog.find(name).retired:
            yield (
                f"{field}: AWS retired {name} ({retired.since}) and no longer starts it; in "
                f"{topology.name}.yaml use {retired.successor}, its current equivalent."
            )


def limit_without_prices(topology: Topology) -> Iterator[str]:
    """Yield each limit in dollars that Shoal cannot enforce because an item has no price."""
    if not (unknown := cost.unknown(topology)):
        return
    for field, limit in (("guard, budget", topology.guard.budget), ("max_dollars", topology.max_dollars)):
        if limit is not None:
            yield (
                f"{field}: Shoal cannot enforce ${limit:.2f} without the prices of {', '.join(unknown)}; remove the "
                f"field, or download prices with `make prices REGION={topology.region}`."
            )


def budget_below_an_hour(topology: Topology) -> Iterator[str]:
    """Yield a problem if the guard's budget is spent within the first hour."""
    budget, hours, hourly = topology.guard.budget, topology.guard.max_hours, cost.hourly(topology)
    if budget is not None and budget < hourly:
        yield (
            f"guard, budget: ${budget:.2f} is less than one hour with everything running, ${hourly:.2f}; write at "
            f"least {math.ceil(hours * hourly)} for the {hours} hours of guard, max_hours."
        )


def run_below_its_start(topology: Topology) -> Iterator[str]:
    """Yield a problem if `max_dollars` is less than the cost of starting and stopping a run's nodes."""
    most, hourly = topology.max_dollars, cost.known(cost.hourly_of_run, topology)
    if most is not None and hourly and most < (least := hourly * _SHORTEST_RUN_MINUTES / 60):
        yield (
            f"max_dollars: ${most:.2f} is less than ${least:.2f}, the cost of the {_SHORTEST_RUN_MINUTES} minutes in "
            f"which a run's nodes start and stop; write at least {math.ceil(hourly)} for an hour."
        )


_RULES: Sequence[Callable[[Topology], Iterator[str]]] = (
    retired_type,
    limit_without_prices,
    budget_below_an_hour,
    run_below_its_start,
)


def offline(topology: Topology) -> list[Finding]:
    """Return the findings that need only the topology and no AWS account. All of them are errors."""
    return [
        Finding(level="error", rule=rule.__name__, sentence=sentence) for rule in _RULES for sentence in rule(topology)
    ]
