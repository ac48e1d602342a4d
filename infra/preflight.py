"""Finds errors and unintended costs in a topology, without calls to AWS.

The findings apply only to AWS. They do not stop a deployment to the emulator, which also runs retired instance types.
"""

import datetime
from collections.abc import Sequence

from infra.rules import Finding, Level, PreflightInput, Rule, machines, money, nodes
from infra.topology import Topology

_RULES: Sequence[tuple[Level, Rule]] = (
    ("error", machines.retired_type),
    ("error", money.limit_without_prices),
    ("error", machines.no_torch_build),
    ("error", machines.image_too_new),
    ("error", machines.release_too_old),
    ("error", money.budget_below_an_hour),
    ("error", money.run_below_its_start),
    ("warning", machines.support_ending),
    ("warning", money.not_offered),
    ("warning", money.no_price),
    ("warning", money.budget_below_the_hours),
    ("warning", money.hours_beyond_the_end),
    ("warning", money.run_beyond_the_budget),
    ("warning", money.idle_too_soon),
    ("warning", money.nobody_warned),
    ("warning", nodes.spot_cluster),
    ("warning", nodes.no_share),
    ("warning", nodes.share_too_slow),
)


def offline(topology: Topology, *, hours: float | None = None, today: datetime.date | None = None) -> list[Finding]:
    """Return the findings that need only the topology and no AWS account, errors first.

    Args:
        topology: The topology to check.
        hours: Planned hours of the deployment. If None, the guard's `max_hours`.
        today: The day on which AWS must support the types and releases. If None, the current day.
    """
    day = today or datetime.datetime.now(tz=datetime.UTC).date()
    asked = topology.guard.max_hours if hours is None else hours
    plan = PreflightInput(topology=topology, hours=asked, today=day)
    return [
        Finding(level=level, rule=rule.__name__, sentence=sentence) for level, rule in _RULES for sentence in rule(plan)
    ]
