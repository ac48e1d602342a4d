"""Deletion of a deployment's stack: who deletes it, when, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from shoal_guard.deletion import AnnouncedDeletion, reason_of_deletion

from shoal.aws import stacks
from shoal.aws.account import Account
from shoal.aws.deployment import Deployment, deleted_stacks, existing_names, name_of
from shoal.aws.guard import GuardReport, find_announcement

DeletionState = Literal["announced", "started", "complete"]
_RECENT = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """Deletion of a stack. It is announced by the guard, has started (and may have failed), or is complete."""

    state: DeletionState
    at: datetime
    by_guard: bool
    reason: str = ""
    """Reason of the guard; "" if somebody else deletes the stack."""
    remedy: str = ""
    """How the owner can keep the deployment."""


def find_deletion(account: Account, stack: Mapping[str, Any], guard: GuardReport | None = None) -> Deletion | None:
    """Return the announced, started or complete deletion of a stack, or None."""
    if not stack["StackStatus"].startswith("DELETE_"):
        return _announced(guard.announced if guard else None)
    is_complete = stack["StackStatus"] == "DELETE_COMPLETE"
    status = "DELETE_COMPLETE" if is_complete else "DELETE_IN_PROGRESS"
    for event in stacks.events(account.client("cloudformation"), stack["StackId"]):
        if event.get("PhysicalResourceId") == stack["StackId"] and event["ResourceStatus"] == status:
            reason = reason_of_deletion(event.get("ClientRequestToken", ""))
            at = event["Timestamp"].astimezone(UTC)
            state: DeletionState = "complete" if is_complete else "started"
            return Deletion(state=state, at=at, by_guard=reason is not None, reason=reason or "")
    return None


def announced_deletion(deployment: Deployment) -> Deletion | None:
    """Return the deletion that a deployment's guard has announced, or None."""
    return _announced(find_announcement(deployment))


def _announced(found: AnnouncedDeletion | None) -> Deletion | None:
    if found is None:
        return None
    return Deletion(state="announced", at=found.at, by_guard=True, reason=found.reason, remedy=found.remedy)


def last_deletion(account: Account, deployment: str) -> Deletion | None:
    """Return the deletion of the last stack of a deployment, or None if no stack was deleted in the last 90 days."""
    deleted = deleted_stacks(account, deployment)
    return find_deletion(account, max(deleted, key=lambda stack: stack["CreationTime"])) if deleted else None


def recent_deletions(account: Account, found: Sequence[Mapping[str, Any]]) -> dict[str, Deletion]:
    """Return the deployments that their guards deleted in the last 24 hours, and that were not deployed again."""
    existing, now = existing_names(found), datetime.now(UTC)
    deletions = {
        name_of(stack): find_deletion(account, stack)
        for stack in sorted(found, key=lambda stack: stack["CreationTime"])
        if name_of(stack) not in existing and now - stack.get("DeletionTime", now) < _RECENT
    }
    return {name: each for name, each in deletions.items() if each and each.by_guard}
