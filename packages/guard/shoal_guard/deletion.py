"""The deletion of a guarded stack, as people read it: announced by the guard's warning, or started by the guard.

`shoal status` reads the deletion from the guard's state, and after its start from the token of CloudFormation's events.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from .handlers.guard.observation import Observation
from .handlers.guard.rules import SHORTEST_NOTICE, STOPPING, GuardSettings, GuardState, limits

_TOKEN = re.compile(r"guard-(?:end|budget-(\d+)-(\d\d))-[0-9a-f]{8}")
"""Token of a deletion by the guard: the limit's token, then random digits. Everybody who may delete can set a token."""


@dataclass(frozen=True, kw_only=True)
class AnnouncedDeletion:
    """Deletion about which the guard sent a warning. `at` is its earliest time."""

    at: datetime
    reason: str
    remedy: str
    stops_runs: bool = False
    """True if the guard has asked the active runs to stop."""


def announced_deletion(
    settings: GuardSettings, now: datetime, account: GuardState, observed: Observation
) -> AnnouncedDeletion | None:
    """Return the earliest deletion that the guard announced, or None. Of `observed`, only the creation time and the
    extension count."""
    announced = []
    for limit in limits(settings, now, account, observed):
        sent, stop = account.notices.get(limit.name), account.notices.get("stop")
        if limit.near and limit.due and sent and sent.value == limit.value:
            stopped = [stop.at + STOPPING] if stop and stop.value == limit.value else []
            at = max(limit.due, sent.at + SHORTEST_NOTICE, *stopped)
            announced.append(
                AnnouncedDeletion(at=at, reason=limit.reason, remedy=limit.remedy, stops_runs=bool(stopped))
            )
    return min(announced, key=lambda each: each.at, default=None)


def reason_of_deletion(token: str) -> str | None:
    """Return why the guard deleted a stack, from the token of the deletion; None if the guard did not delete it."""
    if (found := _TOKEN.fullmatch(token)) is None:
        return None
    return "its life ended" if found[1] is None else f"its budget of ${int(found[1]):,}.{found[2]} is spent"
