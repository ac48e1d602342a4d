"""A deployment as it exists: its stack, what the stack says of itself, and clients for its region.

The easy mistake is to ask the topology's file: it may have changed since. What exists is asked of AWS.
"""

from dataclasses import dataclass
from typing import Literal

import boto3
from botocore.exceptions import ClientError

from bootstrap import objects
from bootstrap.errors import ShoalError
from bootstrap.objects import Place
from infra import topology


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A stack that is there, with its outputs by name."""

    name: str
    topology: str
    session: boto3.Session
    outputs: dict[str, str]

    def output(self, name: str) -> str:
        """An output of the stack. Raises ShoalError when its topology has no such part."""
        try:
            return self.outputs[name]
        except KeyError:
            raise ShoalError(
                f"the deployment '{self.name}' has no {name}: its topology '{self.topology}' leaves that part out"
            ) from None

    @property
    def share(self) -> Literal["efs", "nfs"] | None:
        """What serves the folder that all GPU nodes share; None where each has one of its own."""
        held = self.outputs.get(topology.OUTPUT_SHARE_ID)
        return None if held is None else "nfs" if held == "nfs" else "efs"

    def own(self, address: str) -> Place:
        """The place of an address in the raw or the data bucket; nodes may read no other, so those raise ShoalError."""
        place = objects.parse(address)
        raw, data = (self.output(name) for name in (topology.OUTPUT_RAW_BUCKET, topology.OUTPUT_DATA_BUCKET))
        if place.bucket not in (raw, data):
            raise ShoalError(
                f"the deployment's nodes may not read {address}; copy it first, with aws s3 cp, to s3://{raw} "
                f"(reviews) or s3://{data} (datasets)"
            )
        return place


def find(name: str, session: boto3.Session | None = None) -> Deployment:
    """The deployment of this name, complete and ready for work.

    Raises ShoalError when there is none, or when it is half made.
    """
    session = session or boto3.Session()
    stack_name = topology.stack_name(name)
    try:
        stack = session.client("cloudformation").describe_stacks(StackName=stack_name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            raise ShoalError(
                f"there is no deployment '{name}' (stack {stack_name} in {session.region_name}); "
                f"make one by: shoal deploy TOPOLOGY --deployment {name}; one of another region is found with "
                "AWS_REGION=THAT-REGION"
            ) from None
        raise
    if stack["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
        raise ShoalError(
            f"the deployment '{name}' is in state {stack['StackStatus']}; wait until it is complete, or deploy again"
        )
    tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", ())}
    return Deployment(
        name=name,
        topology=tags.get(topology.TAG_TOPOLOGY, name),
        session=session,
        outputs={output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())},
    )
