"""Deletion of a deployment's stack: who deletes it, when, and why."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal_guard.deletion import Deletion, DeletionState, reason_of_deletion

from bootstrap.aws import stacks
from bootstrap.aws.account import Account
from bootstrap.aws.deployment import deleted_stacks, existing_names, name_of
from bootstrap.aws.guard import GuardReport

_RECENT = timedelta(days=1)


def find_deletion(account: Account, stack: Mapping[str, Any], guard: GuardReport | None = None) -> Deletion | None:
    """Return the announced, started or complete deletion of a stack, or None."""
    if not stack["StackStatus"].startswith("DELETE_"):
        return guard.announced if guard else None
    is_complete = stack["StackStatus"] == "DELETE_COMPLETE"
    status = "DELETE_COMPLETE" if is_complete else "DELETE_IN_PROGRESS"
    for event in stacks.events(account.client("cloudformation"), stack["StackId"]):
        if event.get("PhysicalResourceId") == stack["StackId"] and event["ResourceStatus"] == status:
            reason = reason_of_deletion(event.get("ClientRequestToken", ""))
            at = event["Timestamp"].astimezone(UTC)
            state: DeletionState = "complete" if is_complete else "started"
            return Deletion(state=state, at=at, by_guard=reason is not None, reason=reason or "")
    return None


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
