"""CloudFormation stacks: their state, owner and events, and functions that wait for a stable state.

A deleted stack can be found only by its ARN, not by its name. Use `describe` for the first call, so that a missing
network is reported at once. Use `watch` for later calls, because it retries while the network is down.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from botocore.exceptions import ClientError

from common import names
from common.errors import ShoalError
from common.progress import reporter
from shoal.aws.account import read_tags
from shoal.aws.retry import retrying

Stack = Mapping[str, Any]
Event = Mapping[str, Any]
StackAction = Literal["deploy", "wait", "delete", "roll back"]

_MIN_PAUSE, _MAX_PAUSE = 0.5, 5.0
_STARTING_SECONDS = 2.0
"""Seconds until a stack's status reflects an operation that was just started."""
_EMPTY = "REVIEW_IN_PROGRESS"
"""Status of a stack that has only a change set. Such a stack has no resources and no tags."""
_INCOMPLETE = ("CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED")


def describe(cloudformation: Any, name: str) -> Stack | None:
    """Return the stack with this name or ARN, or None if it does not exist."""
    try:
        found: Stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return found


def watch(cloudformation: Any, name: str) -> Stack | None:
    """Describe a stack, with retries while the network is down."""
    return retrying(lambda: describe(cloudformation, name))


def wait(cloudformation: Any, name: str, tick: Callable[[str], None], *, but: Collection[str] = ()) -> Stack | None:
    """Wait until no operation is in progress on a stack. Return the stack, or None if it no longer exists.

    Do not wait if the stack has a status in `but`. `tick` is called with the stack's status before each pause. Pauses
    grow from half a second to five seconds.
    """
    pause = _MIN_PAUSE
    while True:
        stack = watch(cloudformation, name)
        if stack is None or not stack["StackStatus"].endswith("_IN_PROGRESS") or stack["StackStatus"] in but:
            return stack
        tick(stack["StackStatus"])
        time.sleep(pause)
        pause = min(1.5 * pause, _MAX_PAUSE)


def outputs(stack: Stack) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}


def owner_and_topology(stack: Stack | None) -> tuple[str, str] | None:
    """Return the stack's owner and topology, or None if the stack does not exist or is empty."""
    if stack is None or stack["StackStatus"] == _EMPTY:
        return None
    tags = read_tags(stack.get("Tags"))
    return tags.get(names.TAG_OWNER, "unknown"), tags.get(names.TAG_TOPOLOGY, "unknown")


def name_conflict(stack: Stack | None, *, deployment: str, owner: str, made_from: str) -> str | None:
    """Return an error message if the stack has an owner other than `owner` or a topology other than `made_from`, else
    None."""
    existing = owner_and_topology(stack)
    if existing is None or existing == (owner, made_from):
        return None
    return (
        f"the deployment '{deployment}' belongs to {existing[0]} (topology {existing[1]}); choose a different name "
        f"with --deployment NAME, or destroy that deployment first: shoal destroy {deployment}"
    )


def next_action(status: str | None) -> StackAction:
    """Return the next action for a stack with this status. The status None stands for a missing stack."""
    if status is None or status == _EMPTY:
        return "deploy"
    if status.endswith("_IN_PROGRESS"):
        return "wait"
    if status in _INCOMPLETE:
        return "delete"
    return "roll back" if status == "UPDATE_ROLLBACK_FAILED" else "deploy"


def wait_until_deployable(cloudformation: Any, name: str) -> Stack | None:
    """Bring a stack into a state in which it can be deployed, after an interrupted deployment or destruction.

    Returns the stack in that state, or None if it no longer exists. Raises ShoalError if CloudFormation fails.
    """
    tried: set[StackAction] = set()
    while True:
        stack = watch(cloudformation, name)
        if stack is None:
            return None
        status = stack["StackStatus"]
        action = next_action(status)
        if action == "deploy":
            return stack
        if action != "wait":
            if action in tried:
                raise ShoalError(
                    f"CloudFormation could not {action} the stack {name} of an earlier deployment ({status}): "
                    f"{stack.get('StackStatusReason', 'no reason was given')}; remove it with `shoal destroy`"
                )
            tried.add(action)
            _start(cloudformation, stack, action)
        reporter().stage(f"an earlier deployment, {status}")
        time.sleep(_STARTING_SECONDS)
        wait(cloudformation, stack["StackId"], lambda _: reporter().tick())


def events(cloudformation: Any, stack: str) -> list[Event]:
    """Return the events of a stack, the newest first. `stack` is its name or ARN. If the stack does not exist, return
    no events."""
    pages = cloudformation.get_paginator("describe_stack_events")
    try:
        return retrying(lambda: [event for page in pages.paginate(StackName=stack) for event in page["StackEvents"]])
    except ClientError as error:
        if "does not exist" in str(error):
            return []
        raise


def _start(cloudformation: Any, stack: Stack, action: StackAction) -> None:
    if action == "delete":
        retrying(lambda: cloudformation.delete_stack(StackName=stack["StackName"]))
    else:
        retrying(lambda: cloudformation.continue_update_rollback(StackName=stack["StackName"]))
