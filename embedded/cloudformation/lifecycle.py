"""Which operations of a stack wait for which, as CloudFormation has it.

A stack that is being made can be deleted: what is under way is finished, the rest is not begun, and everything goes.
One that is being deleted is not deleted twice over. The one thing that is easy to get wrong is what others see
meanwhile: from the moment that the delete is accepted the stack is being deleted, whatever its making still comes to.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ministack.services.cloudformation import _stacks, changesets, handlers, stacks

from embedded.service import Record

_Task = Callable[..., Coroutine[Any, Any, None]]
_STUCK = ("DELETE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED")


class _Stack(dict[str, Any]):
    """A stack's record, whose status stays one of deletion once it is to be deleted."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.made = asyncio.Event()
        self.doomed = False

    def __setitem__(self, name: str, value: Any) -> None:
        if not (self.doomed and name == "StackStatus" and not value.startswith("DELETE_")):
            super().__setitem__(name, value)


def install() -> None:
    """Put the waiting in between the operations."""
    deploy, delete = _made(stacks._deploy_stack_async), _deleted(stacks._delete_stack_async)
    for module in (stacks, handlers, changesets):
        for name, task in (("_deploy_stack_async", deploy), ("_delete_stack_async", delete)):
            if hasattr(module, name):
                setattr(module, name, task)
    provision = stacks._provision_resource

    def unless_doomed(kind: str, logical: str, properties: Record, name: str) -> Any:
        stack = _stacks.get(name)
        if isinstance(stack, _Stack) and stack.doomed:
            raise ValueError("Resource creation cancelled")
        return provision(kind, logical, properties, name)

    stacks._provision_resource = unless_doomed
    actions = handlers._ACTION_HANDLERS
    actions["DeleteStack"] = _unless(actions["DeleteStack"], _why_not_deleted)
    for name in ("UpdateStack", "CreateChangeSet", "ExecuteChangeSet"):
        actions[name] = _unless(actions[name], _why_not_updated)


def _made(deploy: _Task) -> _Task:
    async def made(name: str, identifier: str, *rest: Any, **more: Any) -> None:
        stack = _stacks[name] = _Stack(_stacks[name])
        try:
            await deploy(name, identifier, *rest, **more)
        finally:
            stack.made.set()

    return made


def _deleted(delete: _Task) -> _Task:
    async def deleted(name: str, identifier: str, *rest: Any, **more: Any) -> None:
        stack = _stacks.get(name)
        if stack is None or stack["StackStatus"] == "DELETE_IN_PROGRESS":
            return
        if isinstance(stack, _Stack) and not stack.made.is_set():
            stack.doomed = True
            stack["StackStatus"] = "DELETE_IN_PROGRESS"
            await stack.made.wait()
        await delete(name, identifier, *rest, **more)

    return deleted


def _unless(action: Callable[[Record], Any], why_not: Callable[[Record], str]) -> Callable[[Record], Any]:
    def checked(parameters: Record) -> Any:
        stack = handlers._resolve_stack(handlers._p(parameters, "StackName"))
        reason = why_not(stack) if stack else ""
        return handlers._error("ValidationError", reason) if reason else action(parameters)

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
