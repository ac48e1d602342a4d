"""Rules for prices, the budget, hours, and the email address for warnings.

The hourly cost while everything runs is an upper bound. So a budget below this cost is a warning, not an error.
"""

import math
from collections.abc import Iterator

from infra import catalog, cost
from infra.rules import PreflightInput
from infra.topology import instance_types

_SLOWEST_GROUP_MINUTES = 20
_SHORTEST_RUN_MINUTES = 10


def no_price(plan: PreflightInput) -> Iterator[str]:
    """Yield the items without a price, if the topology sets no limit in dollars. With a limit, `limit_without_prices`
    yields them."""
    limited = plan.topology.guard.budget is not None or plan.topology.max_dollars is not None
    if not limited and (unknown := cost.unknown(plan.topology)):
        region = plan.topology.region
        yield (
            f"prices: Shoal does not know the prices of {', '.join(unknown)} in {region} and counts them as 0; with "
            f"AWS credentials, `make prices REGION={region}` downloads them."
        )


def limit_without_prices(plan: PreflightInput) -> Iterator[str]:
    """Yield each limit in dollars that Shoal cannot enforce because an item has no price."""
    if not (unknown := cost.unknown(plan.topology)):
        return
    for field, limit in (("guard, budget", plan.topology.guard.budget), ("max_dollars", plan.topology.max_dollars)):
        if limit is not None:
            yield (
                f"{field}: Shoal cannot enforce ${limit:.2f} without the prices of {', '.join(unknown)}; remove the "
                f"field, or download prices with `make prices REGION={plan.topology.region}`."
            )


def not_offered(plan: PreflightInput) -> Iterator[str]:
    """Yield each instance type that no zone of the region offered when the price list was created."""
    prices = catalog.prices(plan.topology.region)
    for name in instance_types(plan.topology):
        if prices.zones and name not in prices.zones and not catalog.find(name).retired:
            yield (
                f"{name}: EC2 did not offer this type in {plan.topology.region} on {prices.date}; use a different "
                "type or region."
            )


def budget_below_an_hour(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the guard's budget is spent within the first hour."""
    budget, hours, hourly = plan.topology.guard.budget, plan.topology.guard.max_hours, cost.hourly(plan.topology)
    if budget is not None and budget < hourly:
        yield (
            f"guard, budget: ${budget:.2f} is less than one hour with everything running, ${hourly:.2f}; write at "
            f"least {math.ceil(hours * hourly)} for the {hours} hours of guard, max_hours."
        )


def budget_below_the_hours(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the guard's budget is spent before the planned hours are over."""
    budget, hourly = plan.topology.guard.budget, cost.hourly(plan.topology)
    if budget is not None and hourly <= budget < plan.hours * hourly:
        yield (
            f"guard, budget: ${budget:.2f} is spent after {budget / hourly:.1f} h with everything running, before the "
            f"planned {plan.hours:g} h (${plan.hours * hourly:.2f}); the guard then deletes the stack."
        )


def hours_beyond_the_end(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the planned hours exceed the guard's `max_hours`."""
    if plan.hours > plan.topology.guard.max_hours:
        yield (
            f"guard, max_hours: the guard deletes the stack after {plan.topology.guard.max_hours} h, before the "
            f"planned {plan.hours:g} h; write {plan.hours:g}, or add hours later with `shoal extend`."
        )


def run_below_its_start(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if `max_dollars` is less than the cost of starting and stopping a run's nodes."""
    most, hourly = plan.topology.max_dollars, cost.known(cost.hourly_of_run, plan.topology)
    if most is not None and hourly and most < (least := hourly * _SHORTEST_RUN_MINUTES / 60):
        yield (
            f"max_dollars: ${most:.2f} is less than ${least:.2f}, the cost of the {_SHORTEST_RUN_MINUTES} minutes in "
            f"which a run's nodes start and stop; write at least {math.ceil(hourly)} for an hour."
        )


def run_beyond_the_budget(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the guard's budget is spent before a run costs `max_dollars`."""
    most, budget = plan.topology.max_dollars, plan.topology.guard.budget
    if most is not None and budget is not None and most >= budget:
        yield (
            f"max_dollars: the guard deletes the stack when ${budget:.2f} are spent (guard, budget), before a run "
            f"costs ${most:.2f}; write less than {budget:.2f}."
        )


def idle_too_soon(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the guard could stop nodes that wait for another group. A spot group can take ten minutes to
    start."""
    if len(plan.topology.training) > 1 and plan.topology.guard.idle_minutes < _SLOWEST_GROUP_MINUTES:
        yield (
            f"guard, idle_minutes: after {plan.topology.guard.idle_minutes} minutes the guard can stop nodes that wait "
            f"for the start of another group; write at least {_SLOWEST_GROUP_MINUTES}."
        )


def nobody_warned(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the topology has no email address, because the guard warns only by email."""
    if plan.topology.guard.mail is None:
        yield "guard, mail: without an address the guard deletes the stack without a warning; add an email address."
