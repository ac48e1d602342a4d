"""Destroys a deployment in any state: its stack by CloudFormation, and what is left by `sweep`.

A deleted stack can leave resources: those it was told to keep, those made beside it, or everything where somebody
deleted it by hand. So the account is swept afterwards, with or without a stack.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError
from shoal_guard.sweep.deletion import empty_bucket
from shoal_guard.sweep.listing import suppress_error
from shoal_guard.sweep.sweeping import STUCK_SECONDS, UNVERIFIED, FoundResource

from bootstrap.aws import stacks
from bootstrap.aws.account import Account
from bootstrap.aws.retry import retrying
from bootstrap.aws.stacks import Stack
from bootstrap.progress import Bars
from bootstrap.removal.sweep import sweep
from common.errors import ShoalError
from infra import topology

_ROUNDS = 4
"""After the sweep: one that leaves nothing, and one for each resource that another depends on."""
_DELETABLE = ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS", "DELETE_IN_PROGRESS")


@dataclass(frozen=True, kw_only=True)
class DestroyResult:
    stack: str
    """`deleted`, `was not there`, or why it is still there."""
    things: Sequence[FoundResource]
    """What was found outside the stack, or left by it."""

    @property
    def costs(self) -> bool:
        """Whether anything is left that costs money, except kept data."""
        return self.stack not in (_DELETED, _ABSENT) or any(thing.costs for thing in self.things)

    @property
    def unverified(self) -> int:
        """How many resources or services could not be checked."""
        return sum(thing.outcome == UNVERIFIED for thing in self.things)

    @property
    def proven(self) -> bool:
        """Whether everything was checked, and nothing is left that costs money."""
        return not self.costs and not self.unverified


_DELETED, _ABSENT = "deleted", "was not there"


def destroy(
    deployment: str,
    account: Account,
    *,
    bars: Bars,
    say: Callable[[str], None],
    stuck_seconds: float = STUCK_SECONDS,
    empty: str | None = None,
) -> DestroyResult:
    """Delete the deployment's stack if there is one, then everything else of the deployment.

    `empty` is a bucket that is deleted even if it holds runs that were not fetched. Raises ShoalError when the stack is
    protected, or AWS refuses to start the deletion.
    """
    name = topology.stack_name(deployment)
    stack = stacks.describe(account.client("cloudformation"), name)
    outcome = _ABSENT
    if stack is not None:
        outcome = _delete(account, stack["StackId"], bars, say)
    if empty is not None:  # only now, because nodes of the stack wrote there
        with suppress_error("NoSuchBucket"):
            empty_bucket(account, empty)
    bars.stage("look for what is left", 0)
    begun = False

    def show(done: int, total: int) -> None:
        nonlocal begun
        if not begun:
            bars.stage("delete what is left", total, unit="resource")
            begun = True
        bars.at(done)

    things = sweep(deployment, account, progress=show, stuck_seconds=stuck_seconds)
    for number in range(_ROUNDS):
        if stack is not None and outcome != _DELETED:  # the sweep may have deleted what blocked it
            outcome = _delete(account, stack["StackId"], bars, say, retain=number > 0)
    return DestroyResult(stack=outcome, things=things)


def _delete(account: Account, arn: str, bars: Bars, say: Callable[[str], None], *, retain: bool = False) -> str:
    """Delete a stack by its ARN; returns `deleted`, or why it is still there, after saying what could not be deleted.

    With `retain` CloudFormation leaves what it could not delete before, and goes on with the rest.
    """
    cloudformation = account.client("cloudformation")
    stack = stacks.wait(cloudformation, arn, lambda status: bars.stage(f"wait for {status}", 0), but=_DELETABLE)
    if stack is None or stack["StackStatus"] == "DELETE_COMPLETE":
        return _DELETED
    if stack["StackStatus"] != "DELETE_IN_PROGRESS":
        failed = _failed(account, arn) if retain and stack["StackStatus"] == "DELETE_FAILED" else []
        _start_deletion(cloudformation, stack, retain=[each["LogicalResourceId"] for each in failed])
    total = len(_resources(account, arn))
    bars.stage("CloudFormation deletes", total, unit="resource")

    def show(_status: str) -> None:
        bars.at(total - sum(each["ResourceStatus"] != "DELETE_COMPLETE" for each in _resources(account, arn)))
        bars.tick()

    stack = stacks.wait(cloudformation, arn, show)
    if stack is None or stack["StackStatus"] == "DELETE_COMPLETE":
        return _DELETED
    for each in _failed(account, arn):
        reason = each.get("ResourceStatusReason") or "no reason was given"
        say(f"{each['LogicalResourceId']} ({each['ResourceType']}) could not be deleted: {reason}")
    return f"{stack['StackStatus']}: {stack.get('StackStatusReason') or 'no reason was given'}"


def _failed(account: Account, arn: str) -> list[Any]:
    return [each for each in _resources(account, arn) if each["ResourceStatus"] == "DELETE_FAILED"]


def _start_deletion(cloudformation: Any, stack: Stack, *, retain: Sequence[str]) -> None:
    try:
        retrying(partial(cloudformation.delete_stack, StackName=stack["StackId"], RetainResources=list(retain)))
    except ClientError as error:
        message = error.response["Error"].get("Message", "")
        if "TerminationProtection" in message:
            raise ShoalError(
                f"the stack {stack['StackName']} is protected against deletion; remove the protection: aws "
                "cloudformation update-termination-protection --no-enable-termination-protection --stack-name "
                f"{stack['StackName']}"
            ) from None
        if "cannot be assumed" in message:
            raise ShoalError(
                f"CloudFormation cannot use the role with which {stack['StackName']} was deployed ({message}); run "
                "`cdk bootstrap` to create the role again, then run `shoal destroy` again"
            ) from None
        raise


def _resources(account: Account, arn: str) -> list[Any]:
    """The stack's resources; none where it is gone, or the user may not list them: they are needed only for display."""

    def listed() -> list[Any]:
        return list(account.items("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=arn))

    try:
        return retrying(listed)
    except ClientError as error:
        if "does not exist" in str(error) or error.response["Error"]["Code"] == "AccessDenied":
            return []
        raise
