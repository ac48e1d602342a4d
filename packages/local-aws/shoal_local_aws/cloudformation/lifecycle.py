"""Decides which operations of a stack wait for which, as in CloudFormation.

A stack can be deleted during its creation: the resource in progress is finished, the others are not started, and then
everything is deleted. A second DeleteStack changes nothing. As soon as a deletion is accepted, the stack's status is
DELETE_IN_PROGRESS, whatever its creation still does.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from shoal_local_aws.seams import cloudformation
from shoal_local_aws.seams.cloudformation import StackTask
from shoal_local_aws.service import Record, parameter

_STUCK = ("DELETE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED")


class _Stack(dict[str, Any]):
    """A stack's record; after a request to delete it, its status stays one of deletion."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.made = asyncio.Event()
        self.delete_requested = False

    def __setitem__(self, name: str, value: Any) -> None:
        if not (self.delete_requested and name == "StackStatus" and not value.startswith("DELETE_")):
            super().__setitem__(name, value)


def install() -> None:
    """Replace the operations by those that wait."""
    cloudformation.deploy.wrap(_made)
    cloudformation.delete.wrap(_deleted)
    create = cloudformation.create_resource.now

    def unless_delete_requested(kind: str, logical: str, properties: Record, name: str) -> Any:
        stack = cloudformation.stacks.get(name)
        if isinstance(stack, _Stack) and stack.delete_requested:
            raise ValueError("Resource creation cancelled")
        return create(kind, logical, properties, name)

    cloudformation.create_resource.put(unless_delete_requested)
    cloudformation.operations.wrap("DeleteStack", partial(_unless, _why_not_deleted))
    for name in ("UpdateStack", "CreateChangeSet", "ExecuteChangeSet"):
        cloudformation.operations.wrap(name, partial(_unless, _why_not_updated))


def _made(deploy: StackTask) -> StackTask:
    async def made(name: str, identifier: str, *rest: Any, **more: Any) -> None:
        stack = cloudformation.stacks[name] = _Stack(cloudformation.stacks[name])
        try:
            await deploy(name, identifier, *rest, **more)
        finally:
            stack.made.set()

    return made


def _deleted(delete: StackTask) -> StackTask:
    async def deleted(name: str, identifier: str, *rest: Any, **more: Any) -> None:
        stack = cloudformation.stacks.get(name)
        if stack is None or stack["StackStatus"] == "DELETE_IN_PROGRESS":
            return
        if isinstance(stack, _Stack) and not stack.made.is_set():
            stack.delete_requested = True
            stack["StackStatus"] = "DELETE_IN_PROGRESS"
            await stack.made.wait()
        await delete(name, identifier, *rest, **more)

    return deleted


def _unless(why_not: Callable[[Record], str], action: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def checked(parameters: Record) -> Any:
        stack = cloudformation.find_stack(parameter(parameters, "StackName"))
        reason = why_not(stack) if stack else ""
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
