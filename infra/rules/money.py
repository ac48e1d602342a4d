"""Rules on money and time: prices, the budget, the hours, and the mail address for warnings.

The cost while everything runs is an upper bound, so a budget below it is a warning, not an error.
"""

import math
from collections.abc import Callable, Iterator

from infra import cost
from infra.rules import PreflightInput
from infra.topology import Topology
from infra.topology_error import TopologyError

_SLOWEST_GROUP_MINUTES = 20
_SHORTEST_RUN_MINUTES = 10


def no_price(plan: PreflightInput) -> Iterator[str]:
    """The first price that is missing, so that the guard could not count the costs and keep a budget."""
    try:
        cost.rows(plan.topology)
    except TopologyError as error:
        yield str(error)


def budget_below_an_hour(plan: PreflightInput) -> Iterator[str]:
    """The guard's budget is spent within the first hour."""
    budget, hours, hourly = (
        plan.topology.guard.budget,
        plan.topology.guard.max_hours,
        _priced(cost.hourly, plan.topology),
    )
    if budget is not None and hourly and budget < hourly:
        yield (
            f"guard, budget: ${budget:.2f} is less than one hour of this topology at work, ${hourly:.2f}; write at "
            f"least {math.ceil(hours * hourly)} for the {hours} hours of guard, max_hours."
        )


def budget_below_the_hours(plan: PreflightInput) -> Iterator[str]:
    """The guard's budget is spent before the requested hours are over."""
    budget, hourly = plan.topology.guard.budget, _priced(cost.hourly, plan.topology)
    if budget is not None and hourly and hourly <= budget < plan.hours * hourly:
        yield (
            f"guard, budget: ${budget:.2f} is spent after {budget / hourly:.1f} h with everything at work, before "
            f"the {plan.hours:g} h asked for (${plan.hours * hourly:.2f}); the guard then deletes the stack."
        )


def hours_beyond_the_end(plan: PreflightInput) -> Iterator[str]:
    """More hours are requested than the guard's max_hours allow."""
    if plan.hours > plan.topology.guard.max_hours:
        yield (
            f"guard, max_hours: the guard deletes the stack after {plan.topology.guard.max_hours} h, before the "
            f"{plan.hours:g} h asked for; write {plan.hours:g}, or add hours later by `shoal extend`."
        )


def run_below_its_start(plan: PreflightInput) -> Iterator[str]:
    """The topology's max_dollars are less than starting and stopping a run's nodes costs."""
    most, hourly = plan.topology.max_dollars, _priced(cost.hourly_of_run, plan.topology)
    if most is not None and hourly and most < (least := hourly * _SHORTEST_RUN_MINUTES / 60):
        yield (
            f"max_dollars: ${most:.2f} is less than {_SHORTEST_RUN_MINUTES} minutes of the nodes that train, "
            f"${least:.2f}, in which they start and stop; write at least {math.ceil(hourly)} for an hour."
        )


def run_beyond_the_budget(plan: PreflightInput) -> Iterator[str]:
    """The guard's budget is spent before a run has cost the topology's max_dollars."""
    most, budget = plan.topology.max_dollars, plan.topology.guard.budget
    if most is not None and budget is not None and most >= budget:
        yield (
            f"max_dollars: the guard deletes the stack when ${budget:.2f} are spent (guard, budget), before a run "
            f"costs ${most:.2f}; write less."
        )


def idle_too_soon(plan: PreflightInput) -> Iterator[str]:
    """Ready nodes may wait idle for another group's nodes, which may wait ten minutes for spot capacity."""
    if len(plan.topology.training) > 1 and plan.topology.guard.idle_minutes < _SLOWEST_GROUP_MINUTES:
        yield (
            f"guard, idle_minutes: {plan.topology.guard.idle_minutes} may end nodes that wait for those of another "
            f"group to start; write at least {_SLOWEST_GROUP_MINUTES}."
        )


def nobody_warned(plan: PreflightInput) -> Iterator[str]:
    """The guard warns only by mail before it deletes the stack, and there is no mail address."""
    if plan.topology.guard.mail is None:
        yield "guard, mail: there is none, so nobody is warned before the guard deletes the stack; add an address."


def _priced(price: Callable[[Topology], float], topology: Topology) -> float | None:
    """None where a price is missing, which another rule reports."""
    try:
        return price(topology)
    except TopologyError:
        return None
