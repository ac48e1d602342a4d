"""Runs operations on stacks with CloudFormation's rules for credentials, order and failed deletions."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from shoal_local_aws.permissions import identities
from shoal_local_aws.permissions.credentials import Credentials
from shoal_local_aws.seams import cloudformation
from shoal_local_aws.seams.cloudformation import StackTask
from shoal_local_aws.service import Record, acting_as, parameter

_SESSION = "AWSCloudFormation"
_WITH_ROLE = (
    *("CreateStack", "UpdateStack", "DeleteStack", "CreateChangeSet"),
    *("RollbackStack", "ContinueUpdateRollback"),
)
"""Operations that can set a stack's role."""
# Belief: After a failed deletion or rollback, a stack is not updated. No check: it takes a failed stack.
_STUCK = ("DELETE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED")
_credentials_of: dict[str, Credentials] = {}
"""Credentials that the operations of a stack use, by stack name."""
_with_role: set[str] = set()
"""Names of the stacks with a role. A stack keeps its role for later operations."""
_kept: dict[str, dict[str, Record]] = {}
"""Resources, by stack name, that a deletion keeps because the deletion of a dependent resource failed."""


class _Stack(dict[str, Any]):
    """Record of a stack. After DeleteStack, the status can change only to a status that begins with DELETE_."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.made = asyncio.Event()
        self.delete_requested = False

    def __setitem__(self, name: str, value: Any) -> None:
        if not (self.delete_requested and name == "StackStatus" and not value.startswith("DELETE_")):
            super().__setitem__(name, value)


def install() -> None:
    """Extend ministack's operations on stacks by the rules of this module."""
    for name in _WITH_ROLE:
        cloudformation.operations.wrap(name, _keeping_role)
    cloudformation.deploy.wrap(_deploying_as_creator)
    cloudformation.delete.wrap(_deleted)
    cloudformation.operations.wrap("DeleteStack", partial(_unless, _why_not_deleted))
    for name in ("UpdateStack", "CreateChangeSet", "ExecuteChangeSet"):
        cloudformation.operations.wrap(name, partial(_unless, _why_not_updated))


def is_cancelled(name: str) -> bool:
    """Return whether the deletion of a stack was requested during its creation."""
    stack = cloudformation.stacks.get(name)
    return isinstance(stack, _Stack) and stack.delete_requested


def keep_dependencies(name: str, logical: str) -> None:
    """Keep the resources on which the resource `logical` depends, because the deletion of `logical` failed."""
    if name in _kept:
        record = cloudformation.stacks[name]
        resources = record["_resources"]
        needed = cloudformation.needed_by([logical], record["_template"].get("Resources", {}), set(resources))
        _kept[name] |= {each: resources.pop(each) for each in needed - {logical}}


def _keeping_role(operation: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def kept(parameters: Record) -> Any:
        name, role = parameter(parameters, "StackName"), parameter(parameters, "RoleARN")
        stack = cloudformation.find_stack(name)
        name = stack["StackName"] if stack else name
        if stack is None:
            _with_role.discard(name)
        if role:
            _credentials_of[name] = identities.session_of(role, _SESSION)
            _with_role.add(name)
        # Rule: A stack keeps its role, or uses the caller's session. Source: botocore cloudformation DeleteStack.
        elif name not in _with_role:
            _credentials_of[name] = identities.caller()
        with acting_as(_credentials_of[name]):
            return operation(parameters)

    return kept


def _deploying_as_creator(deploy: StackTask) -> StackTask:
    async def deployed(name: str, *rest: Any, **more: Any) -> None:
        stack = cloudformation.stacks[name] = _Stack(cloudformation.stacks[name])
        try:
            with acting_as(_credentials_of[name]):
                await deploy(name, *rest, **more)
        finally:
            stack.made.set()

    return deployed


def _deleted(delete: StackTask) -> StackTask:
    async def deleted(name: str, identifier: str, retain: Any = (), force: bool = False) -> None:
        stack = cloudformation.stacks.get(name)
        if stack is None or name in _kept or stack["StackStatus"] == "DELETE_IN_PROGRESS":
            return
        if not force:  # ministack's forced deletion already keeps dependencies
            _kept[name] = {}
        try:
            if isinstance(stack, _Stack) and not stack.made.is_set():
                # Belief: A deletion ends a creation after the current resource. No check: it takes a stack.
                stack.delete_requested = True
                stack["StackStatus"] = "DELETE_IN_PROGRESS"
                await stack.made.wait()
            with acting_as(_credentials_of[name]):
                await delete(name, identifier, retain, force=force)
        finally:
            kept, left = _kept.pop(name, {}), cloudformation.stacks.get(name)
            if left is not None:
                # Belief: What a resource depends on stays if its deletion fails. No check: it takes a stack.
                left.get("_resources", {}).update(kept)

    return deleted


def _unless(why_not: Callable[[Record], str], action: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def checked(parameters: Record) -> Any:
        stack = cloudformation.find_stack(parameter(parameters, "StackName"))
        reason = why_not(stack) if stack else ""
        # Rule: A stack in the wrong state is not changed. Source: aws/copilot-cli#1180; remind101/empire#932.
        return cloudformation.error("ValidationError", reason) if reason else action(parameters)

    return checked


def _why_not_deleted(stack: Record) -> str:
    status = stack["StackStatus"]
    if status.startswith("UPDATE_") and status.endswith("_IN_PROGRESS"):
        return f"Stack [{stack['StackId']}] cannot be deleted while in status {status}"
    return ""


def _why_not_updated(stack: Record) -> str:
    status = stack["StackStatus"]
    if status in _STUCK or (status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"):
        return f"Stack:{stack['StackId']} is in {status} state and can not be updated."
    return ""
