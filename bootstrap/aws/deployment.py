"""A deployment as it exists: its stack with its outputs, and a session for its region.

Do not read the topology's file here, because it may have changed since the deployment.
"""

from dataclasses import dataclass
from typing import Literal

import boto3

from bootstrap.aws import objects, stacks
from bootstrap.aws.account import Account
from bootstrap.aws.objects import Place
from bootstrap.aws.ownership import Ownership
from bootstrap.errors import ShoalError
from infra import topology


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """An existing stack, with its outputs by name."""

    name: str
    topology: str
    session: boto3.Session
    outputs: dict[str, str]

    def output(self, name: str) -> str:
        """An output of the stack. Raises ShoalError when the topology does not have that part."""
        try:
            return self.outputs[name]
        except KeyError:
            raise ShoalError(
                f"the deployment '{self.name}' has no {name}: its topology '{self.topology}' leaves that part out"
            ) from None

    @property
    def share(self) -> Literal["efs", "nfs"] | None:
        """What serves the folder that all GPU nodes share; None where each node has its own."""
        held = self.outputs.get(topology.OUTPUT_SHARE_ID)
        return None if held is None else "nfs" if held == "nfs" else "efs"

    def own(self, address: str) -> Place:
        """The place of an address. Raises ShoalError outside of the raw and data buckets: nodes read no other."""
        place = objects.parse(address)
        raw, data = (self.output(name) for name in (topology.OUTPUT_RAW_BUCKET, topology.OUTPUT_DATA_BUCKET))
        if place.bucket not in (raw, data):
            raise ShoalError(
                f"the deployment's nodes may not read {address}; copy it first, with aws s3 cp, to s3://{raw} "
                f"(reviews) or s3://{data}/{topology.DATASETS_PREFIX}DIGEST/ (datasets)"
            )
        return place


def find_deployment(name: str, account: Account | None = None) -> Deployment:
    """The deployment of this name, complete and ready for work.

    Raises ShoalError when there is none, or when it is not complete.
    """
    account = account or Account()
    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(name))
    if stack is None:
        raise no_such_deployment(name, account)
    if stack["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
        raise ShoalError(
            f"the deployment '{name}' is in state {stack['StackStatus']}; wait until it is complete, or deploy again"
        )
    _owner, made_from = stacks.owner_and_topology(stack) or ("", name)
    return Deployment(name=name, topology=made_from, session=account.session, outputs=stacks.outputs(stack))


def no_such_deployment(deployment: str, account: Account) -> ShoalError:
    """The error that there is no such deployment here, with the region that has one."""
    ownership = Ownership(account, deployment)
    if ownership.elsewhere:
        return ShoalError(
            f"there is no deployment '{deployment}' in {account.region}, but one in {ownership.elsewhere}: add "
            f"--region {ownership.elsewhere}"
        )
    return ShoalError(
        f"there is no deployment '{deployment}' (stack {ownership.stack} in {account.region}); `shoal deploy TOPOLOGY "
        f"--deployment {deployment}` makes one"
    )
