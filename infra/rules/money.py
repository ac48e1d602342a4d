"""Rules on money and time: prices, the budget, the hours, and the mail address for warnings.

The cost while everything runs is an upper bound, so a budget below it is a warning, not an error.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from infra import cost
from infra.rules import Rule
from infra.topology import Topology
from infra.topology_error import TopologyError

_SLOWEST_GROUP_MINUTES = 20
_SHORTEST_RUN_MINUTES = 10


class NoPrice(Rule):
    """A price is missing, so the guard could not count the costs and keep a budget."""

    level = "error"

    def check(self, topology: Topology) -> Iterator[str]:
        """The first price that is missing."""
        try:
            cost.rows(topology)
        except TopologyError as error:
            yield str(error)


class BudgetBelowAnHour(Rule):
    """The budget is spent within the first hour."""

    level = "error"

    def check(self, topology: Topology) -> Iterator[str]:
        """The guard's budget."""
        budget, hourly = topology.guard.budget, _priced(cost.hourly, topology)
        if budget is not None and hourly and budget < hourly:
            yield (
                f"guard, budget: ${budget:.2f} is less than one hour of this topology at work, ${hourly:.2f}; write at "
                f"least {math.ceil(topology.guard.max_hours * hourly)} for the {topology.guard.max_hours} hours of "
                "guard, max_hours."
            )


@dataclass(frozen=True)
class BudgetBelowTheHours(Rule):
    """The budget is spent before the requested hours are over."""

    level = "warning"
    hours: float

    def check(self, topology: Topology) -> Iterator[str]:
        """The guard's budget."""
        budget, hourly = topology.guard.budget, _priced(cost.hourly, topology)
        if budget is not None and hourly and hourly <= budget < self.hours * hourly:
            yield (
                f"guard, budget: ${budget:.2f} is spent after {budget / hourly:.1f} h with everything at work, before "
                f"the {self.hours:g} h asked for (${self.hours * hourly:.2f}); the guard then deletes the stack."
            )


@dataclass(frozen=True)
class HoursBeyondTheEnd(Rule):
    """More hours are requested than the guard allows."""

    level = "warning"
    hours: float

    def check(self, topology: Topology) -> Iterator[str]:
        """The guard's max_hours."""
        if self.hours > topology.guard.max_hours:
            yield (
                f"guard, max_hours: the guard deletes the stack after {topology.guard.max_hours} h, before the "
                f"{self.hours:g} h asked for; write {self.hours:g}, or add hours later by `shoal extend`."
            )


class RunBelowItsStart(Rule):
    """A run may cost less than starting and stopping its nodes."""

    level = "error"

    def check(self, topology: Topology) -> Iterator[str]:
        """The topology's max_dollars."""
        most, hourly = topology.max_dollars, _priced(cost.hourly_of_run, topology)
        if most is not None and hourly and most < (least := hourly * _SHORTEST_RUN_MINUTES / 60):
            yield (
                f"max_dollars: ${most:.2f} is less than {_SHORTEST_RUN_MINUTES} minutes of the nodes that train, "
                f"${least:.2f}, in which they start and stop; write at least {math.ceil(hourly)} for an hour."
            )


class RunBeyondTheBudget(Rule):
    """The budget is spent before a run has cost what it may."""

    level = "warning"

    def check(self, topology: Topology) -> Iterator[str]:
        """The topology's max_dollars."""
        most, budget = topology.max_dollars, topology.guard.budget
        if most is not None and budget is not None and most >= budget:
            yield (
                f"max_dollars: the guard deletes the stack when ${budget:.2f} are spent (guard, budget), before a run "
                f"costs ${most:.2f}; write less."
            )


class IdleTooSoon(Rule):
    """Ready nodes may wait idle for another group's nodes, which may wait ten minutes for spot capacity."""

    level = "warning"

    def check(self, topology: Topology) -> Iterator[str]:
        """The guard's idle_minutes."""
        if len(topology.training) > 1 and topology.guard.idle_minutes < _SLOWEST_GROUP_MINUTES:
            yield (
                f"guard, idle_minutes: {topology.guard.idle_minutes} may end nodes that wait for those of another "
                f"group to start; write at least {_SLOWEST_GROUP_MINUTES}."
            )


class NobodyWarned(Rule):
    """The guard warns only by mail before it deletes the stack, and there is no mail address."""

    level = "warning"

    def check(self, topology: Topology) -> Iterator[str]:
        """The guard's mail."""
        if topology.guard.mail is None:
            yield "guard, mail: there is none, so nobody is warned before the guard deletes the stack; add an address."


def _priced(price: Callable[[Topology], float], topology: Topology) -> float | None:
    """None where a price is missing, which another rule reports."""
    try:
        return price(topology)
    except TopologyError:
        return None
