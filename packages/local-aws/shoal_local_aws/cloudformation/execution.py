"""Gives CloudFormation's calls of other services the credentials of a stack's execution role.

A stack without a role acts with the credentials of whoever asks for the operation, as on AWS.
"""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.permissions import identities
from shoal_local_aws.permissions.credentials import Credentials
from shoal_local_aws.seams import cloudformation
from shoal_local_aws.seams.cloudformation import StackTask
from shoal_local_aws.service import Record, acting_as, parameter

_SESSION = "AWSCloudFormation"
_OPERATIONS = (
    *("CreateStack", "UpdateStack", "DeleteStack", "CreateChangeSet"),
    *("RollbackStack", "ContinueUpdateRollback"),
)
_credentials_of: dict[str, Credentials] = {}
"""Those of the stacks, by their names."""
_with_role: set[str] = set()
"""The stacks that have a role, which they keep for later operations."""


def install() -> None:
    """Keep the role of each operation on a stack, and act as it."""
    for operation in _OPERATIONS:
        cloudformation.operations.wrap(operation, _keeping_role)
    cloudformation.deploy.wrap(_acting)
    cloudformation.delete.wrap(_acting)


def _acting(task: StackTask) -> StackTask:
    async def acting(name: str, *rest: Any, **more: Any) -> None:
        with acting_as(_credentials_of[name]):
            await task(name, *rest, **more)

    return acting


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
        elif name not in _with_role:
            _credentials_of[name] = identities.caller()
        with acting_as(_credentials_of[name]):
            return operation(parameters)

    return kept
