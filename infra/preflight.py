"""Finds, before AWS is asked, what will fail or cost more than intended.

The findings are about AWS. They do not stop a deployment to the emulator, which also runs retired types.
"""

import datetime
from collections.abc import Sequence

from infra.rules import Finding, Rule
from infra.rules.machines import ImageTooNew, NoTorchBuild, ReleaseEnding, ReleaseTooOld, RetiredType
from infra.rules.money import (
    BudgetBelowAnHour,
    BudgetBelowTheHours,
    HoursBeyondTheEnd,
    IdleTooSoon,
    NobodyWarned,
    NoPrice,
    RunBelowItsStart,
    RunBeyondTheBudget,
)
from infra.rules.nodes import NoShare, ShareTooSlow, SpotCluster
from infra.topology import Topology


def offline(topology: Topology, *, hours: float | None = None, today: datetime.date | None = None) -> list[Finding]:
    """All findings that need only the topology, errors first.

    Args:
        topology: what is to be deployed.
        hours: how long the deployment will run; by default until the guard ends it.
        today: the day for which AWS's support is checked; by default the current day.
    """
    day = today or datetime.datetime.now(tz=datetime.UTC).date()
    asked = topology.guard.max_hours if hours is None else hours
    rules: Sequence[Rule] = (
        RetiredType(),
        NoPrice(),
        NoTorchBuild(),
        ImageTooNew(),
        ReleaseTooOld(),
        BudgetBelowAnHour(),
        RunBelowItsStart(),
        ReleaseEnding(day),
        BudgetBelowTheHours(asked),
        HoursBeyondTheEnd(asked),
        RunBeyondTheBudget(),
        IdleTooSoon(),
        NobodyWarned(),
        SpotCluster(),
        NoShare(),
        ShareTooSlow(),
    )
    found = [
        Finding(level=rule.level, rule=type(rule).__name__, sentence=sentence)
        for rule in rules
        for sentence in rule.check(topology)
    ]
    return sorted(found, key=lambda finding: finding.level != "error")
