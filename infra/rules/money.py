"""Rules on money and time: prices, the budget, the hours, and the mail address for warnings.

The cost while everything runs is an upper bound, so a budget below it is a warning, not an error.
"""

import math
from collections.abc import Iterator

from infra import catalog, cost
from infra.rules import PreflightInput
from infra.topology import instance_types

_SLOWEST_GROUP_MINUTES = 20
_SHORTEST_RUN_MINUTES = 10


def no_price(plan: PreflightInput) -> Iterator[str]:
    """What has no price, so that plan and guard count too little; of a limit `limit_without_prices` says it."""
    limited = plan.topology.guard.budget is not None or plan.topology.max_dollars is not None
    if not limited and (unknown := cost.unknown(plan.topology)):
        region = plan.topology.region
        yield (
            f"prices: those of {', '.join(unknown)} in {region} are not known here, and not counted; with AWS "
            f"credentials `make prices REGION={region}` asks for them."
        )


def limit_without_prices(plan: PreflightInput) -> Iterator[str]:
    """A limit in dollars that could not be kept, because something has no price."""
    if not (unknown := cost.unknown(plan.topology)):
        return
    for field, limit in (("guard, budget", plan.topology.guard.budget), ("max_dollars", plan.topology.max_dollars)):
        if limit is not None:
            yield (
                f"{field}: ${limit:.2f} cannot be kept, because the prices of {', '.join(unknown)} are not known; "
                f"leave it out, or ask for them by `make prices REGION={plan.topology.region}`."
            )


def not_offered(plan: PreflightInput) -> Iterator[str]:
    """Each type that no zone of the region offers, by the price list."""
    prices = catalog.prices(plan.topology.region)
    for name in instance_types(plan.topology):
        if prices.zones and name not in prices.zones and not catalog.find(name).retired:
            yield (
                f"{name}: EC2 did not offer it in {plan.topology.region} when its list was made ({prices.date}); take "
                f"another type or region. `shoal catalog --region {plan.topology.region}` shows what it offers."
            )


def budget_below_an_hour(plan: PreflightInput) -> Iterator[str]:
    """The guard's budget is spent within the first hour."""
    budget, hours, hourly = plan.topology.guard.budget, plan.topology.guard.max_hours, cost.hourly(plan.topology)
    if budget is not None and budget < hourly:
        yield (
            f"guard, budget: ${budget:.2f} is less than one hour of this topology at work, ${hourly:.2f}; write at "
            f"least {math.ceil(hours * hourly)} for the {hours} hours of guard, max_hours."
        )


def budget_below_the_hours(plan: PreflightInput) -> Iterator[str]:
    """The guard's budget is spent before the requested hours are over."""
    budget, hourly = plan.topology.guard.budget, cost.hourly(plan.topology)
    if budget is not None and hourly <= budget < plan.hours * hourly:
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
    most, hourly = plan.topology.max_dollars, cost.known(cost.hourly_of_run, plan.topology)
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
