"""Destruction of a deployment in any state. CloudFormation deletes the stack, and `sweep` deletes all other resources.

The deletion of a stack can leave resources: resources that the template retains, and resources that were created
outside the stack. `sweep` therefore always runs afterwards, even if no stack exists.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from common.errors import ShoalError
from common.progress import reporter
from infra import topology
from shoal.aws import stacks
from shoal.aws.account import Account
from shoal.aws.retry import retrying
from shoal.aws.stacks import Stack
from shoal.deployments.removal.deletion import empty_bucket
from shoal.deployments.removal.listing import suppress_error
from shoal.deployments.removal.sweep import STUCK_SECONDS, UNVERIFIED, FoundResource, sweep

_MAX_ATTEMPTS = 4
"""Maximum number of attempts to delete the stack after the sweep. The first attempt deletes all resources. Later
attempts retain the resources that could not be deleted."""
_DELETABLE = ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS", "DELETE_IN_PROGRESS")


@dataclass(frozen=True, kw_only=True)
class DestroyResult:
    stack: str
    """`deleted`, `was not there`, or the reason why the stack still exists."""
    things: Sequence[FoundResource]
    """Resources outside the stack, and resources that the stack's deletion left, each with its outcome."""

    @property
    def costs(self) -> bool:
        """True if the stack or any resource that costs money is left. Data that is kept on purpose does not count."""
        return self.stack not in (_DELETED, _ABSENT) or any(thing.costs for thing in self.things)

    @property
    def unverified(self) -> int:
        """Number of resources or services that could not be checked."""
        return sum(thing.outcome == UNVERIFIED for thing in self.things)

    @property
    def proven(self) -> bool:
        """True if everything was checked and nothing is left that costs money."""
        return not self.costs and not self.unverified


_DELETED, _ABSENT = "deleted", "was not there"


def destroy(
    deployment: str,
    account: Account,
    *,
    stuck_seconds: float = STUCK_SECONDS,
    empty: str | None = None,
) -> DestroyResult:
    """Delete the deployment's stack, if it exists, and then all other resources of the deployment.

    `empty` is a bucket to delete even if it contains runs that were not fetched. Raises ShoalError if the stack is
    protected against deletion, or if CloudFormation cannot use the stack's role.
    """
    name = topology.stack_name(deployment)
    stack = stacks.describe(account.client("cloudformation"), name)
    outcome = _ABSENT
    if stack is not None:
        outcome = _delete(account, stack["StackId"])
    if empty is not None:  # not earlier, because the stack's nodes still wrote to the bucket
        with suppress_error("NoSuchBucket"):
            empty_bucket(account, empty)
    reporter().stage("find leftovers")
    bar_started = False

    def show(done: int, total: int) -> None:
        nonlocal bar_started
        if not bar_started:
            reporter().stage("delete leftovers", total, unit="resource")
            bar_started = True
        reporter().at(done)

    things = sweep(deployment, account, progress=show, stuck_seconds=stuck_seconds)
    for number in range(_MAX_ATTEMPTS):
        if stack is not None and outcome != _DELETED:  # the sweep may have deleted the resource that blocked the stack
            outcome = _delete(account, stack["StackId"], retain=number > 0)
    return DestroyResult(stack=outcome, things=things)


def _delete(account: Account, arn: str, *, retain: bool = False) -> str:
    """Delete the stack with this ARN. Return `deleted`, or the reason why the stack still exists. Each resource that
    CloudFormation could not delete is reported in a note.

    With `retain`, CloudFormation skips the resources that an earlier attempt could not delete.
    """
    cloudformation = account.client("cloudformation")
    stack = stacks.wait(cloudformation, arn, lambda status: reporter().stage(f"wait for {status}"), but=_DELETABLE)
    if stack is None or stack["StackStatus"] == "DELETE_COMPLETE":
        return _DELETED
    if stack["StackStatus"] != "DELETE_IN_PROGRESS":
        failed = _undeleted(account, arn) if retain and stack["StackStatus"] == "DELETE_FAILED" else []
        _start_deletion(cloudformation, stack, retain=[each["LogicalResourceId"] for each in failed])
    total = len(_resources(account, arn))
    reporter().stage("CloudFormation deletes", total, unit="resource")

    def show(_status: str) -> None:
        reporter().at(total - sum(each["ResourceStatus"] != "DELETE_COMPLETE" for each in _resources(account, arn)))
        reporter().tick()

    stack = stacks.wait(cloudformation, arn, show)
    if stack is None or stack["StackStatus"] == "DELETE_COMPLETE":
        return _DELETED
    for each in _undeleted(account, arn):
        reason = each.get("ResourceStatusReason") or "no reason was given"
        reporter().note(f"{each['LogicalResourceId']} ({each['ResourceType']}) was not deleted: {reason}")
    return f"{stack['StackStatus']}: {stack.get('StackStatusReason') or 'no reason was given'}"


def _undeleted(account: Account, arn: str) -> list[Any]:
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
    """Return the resources of a stack, for display and to find resources that block its deletion.

    The list is empty if the stack no longer exists or the user is not allowed to list its resources.
    """

    def listed() -> list[Any]:
        return list(account.items("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=arn))

    try:
        return retrying(listed)
    except ClientError as error:
        if "does not exist" in str(error) or error.response["Error"]["Code"] == "AccessDenied":
            return []
        raise
