"""Which GPU nodes a deployment has: its groups, the nodes that run, and how groups are scaled to zero.

The easy mistake is to leave nodes running. Whoever scaled groups up (`scale_up`) ends with `scale_to_zero`: neither a
second Ctrl-C nor an error of one group keeps it from the others.
"""

import shlex
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import names
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.errors import ShoalError
from bootstrap.interrupt import ENDING_SIGNALS
from bootstrap.progress import note
from infra import topology

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef

_TO_ZERO_SECONDS = 120
_TO_ZERO = ("aws", "autoscaling", "set-desired-capacity", "--desired-capacity", "0")


@dataclass(frozen=True, kw_only=True)
class GpuNode:
    """An instance that runs. Raises ShoalError for an id or an address that cannot be one."""

    instance_id: str
    group: str
    instance_type: str
    market: str
    """`on-demand` or `spot`: how it is paid for, whatever its group prefers."""
    zone: str
    address: str
    """Its private address."""
    gpus: int
    """How many of its GPUs are used: a rank each."""
    launched: datetime
    """From when on it is paid for."""

    def __post_init__(self) -> None:
        names.instance(self.instance_id)
        names.address(self.address)


@dataclass(frozen=True, kw_only=True)
class GpuGroup:
    """An auto scaling group of the deployment; `size` is how many nodes it has when it is scaled up."""

    name: str
    scaling_group: str
    size: int
    desired: int
    """How many it is asked for now."""
    spot: bool
    """Whether it is to be of the spot market, where that has nodes."""
    stays: bool
    """Whether its nodes are there from the deployment on (`start: deploy`), not only while a training runs."""


def groups(deployment: Deployment) -> list[GpuGroup]:
    """The node groups, in alphabetical order. Raises ShoalError when there is none."""
    found = [
        GpuGroup(
            name=tags[topology.TAG_GROUP],
            scaling_group=group["AutoScalingGroupName"],
            size=group["MaxSize"],
            desired=group["DesiredCapacity"],
            spot=tags.get(topology.TAG_MARKET) == "spot",
            stays=tags.get(topology.TAG_START) == "deploy",
        )
        for group, tags in scaling_groups(deployment)
    ]
    if not found:
        raise ShoalError(
            f"the deployment '{deployment.name}' has no GPU nodes: its topology '{deployment.topology}' has no training"
        )
    return sorted(found, key=lambda group: group.name)


def scale_to_zero(deployment: Deployment, scaled: Sequence[GpuGroup]) -> None:
    """Ask these groups for no nodes, but those that stay; returns at once, as AWS ends them by itself.

    Raises ShoalError with the commands to type for the groups that could not be scaled to zero, and Abandoned when the
    user leaves before AWS has answered, after the same has been said.
    """
    client = deployment.session.client("autoscaling")
    running = [group for group in scaled if not group.stays]
    until = time.monotonic() + _TO_ZERO_SECONDS
    with _ignoring_signals():
        try:
            for group in tuple(running):
                with suppress(BotoCoreError, ClientError):
                    retrying(partial(_set_to_zero, client, group), seconds=max(0.0, until - time.monotonic()))
                    running.remove(group)
        except KeyboardInterrupt as interrupt:
            note(running_nodes_warning(running))
            raise Abandoned(interrupt) from None
    if running:
        raise ShoalError(running_nodes_warning(running))


def running_nodes_warning(running: Sequence[GpuGroup]) -> str:
    """What to say of groups that could not be scaled to zero; of those that stay anyway nothing."""
    commands = [
        shlex.join([*_TO_ZERO, "--auto-scaling-group-name", group.scaling_group])
        for group in running
        if not group.stays
    ]
    return (
        "GPU nodes may still run, and cost money, because AWS could not be reached; the deployment's guard ends them "
        "when they have had no work for a while; to end them sooner, type:"
        + "".join(f"\n  {each}" for each in commands)
    )


def _set_to_zero(client: "AutoScalingClient", group: GpuGroup) -> None:
    client.set_desired_capacity(AutoScalingGroupName=group.scaling_group, DesiredCapacity=0)


@contextmanager
def _ignoring_signals() -> Iterator[None]:
    """Ignore signals that would end this process while it is about to save money, unless AWS does not answer."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if retrying.unanswered and callable(handler):
            handler(number, frame)

    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    for number in ENDING_SIGNALS:
        signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def nodes(deployment: Deployment) -> list[GpuNode]:
    """The nodes that run now, by group and then by instance id."""
    tags_of = {
        instance["InstanceId"]: tags
        for group, tags in scaling_groups(deployment)
        for instance in group["Instances"]
        if instance["LifecycleState"] == "InService"
    }
    if not tags_of:
        return []
    pages = deployment.session.client("ec2").get_paginator("describe_instances").paginate(InstanceIds=list(tags_of))
    running = [
        GpuNode(
            instance_id=instance["InstanceId"],
            group=tags_of[instance["InstanceId"]][topology.TAG_GROUP],
            instance_type=instance["InstanceType"],
            market=instance.get("InstanceLifecycle", "on-demand"),
            zone=instance["Placement"]["AvailabilityZone"],
            address=instance["PrivateIpAddress"],
            gpus=int(tags_of[instance["InstanceId"]][topology.TAG_GPUS]),
            launched=instance["LaunchTime"],
        )
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
        if instance["State"]["Name"] == "running"
    ]
    return sorted(running, key=lambda node: (node.group, node.instance_id))


def scaling_groups(deployment: Deployment) -> list[tuple["AutoScalingGroupTypeDef", dict[str, str]]]:
    """The deployment's auto scaling groups, each with its tags."""
    pages = deployment.session.client("autoscaling").get_paginator("describe_auto_scaling_groups").paginate()
    tagged = [
        (group, {tag["Key"]: tag["Value"] for tag in group["Tags"]})
        for page in pages
        for group in page["AutoScalingGroups"]
    ]
    return [
        (group, tags)
        for group, tags in tagged
        if tags.get(topology.TAG_DEPLOYMENT) == deployment.name and topology.TAG_GROUP in tags
    ]
