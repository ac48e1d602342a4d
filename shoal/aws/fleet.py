"""Nodes of a deployment: lists of node groups and running nodes, and a function that scales groups to zero.

Do not use all nodes as training nodes, because readers have no rank. Code that scales groups up (`scale_up`) must call
`scale_to_zero` at the end, because running nodes cost money. Neither a second Ctrl-C nor an error of one group prevents
`scale_to_zero` from scaling the other groups.
"""

import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from common import names
from common.errors import ShoalError
from common.progress import reporter
from infra import parts
from shoal.aws import checked
from shoal.aws.account import read_tags
from shoal.aws.deployment import Deployment
from shoal.aws.retry import Abandoned, retrying
from shoal.interrupt import ENDING_SIGNALS

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef

_TO_ZERO_SECONDS = 120
_TO_ZERO = ("aws", "autoscaling", "set-desired-capacity", "--desired-capacity", "0")


@dataclass(frozen=True, kw_only=True)
class GpuNode:
    """Running node of a node group. The constructor raises ShoalError if the id or the address is invalid."""

    instance_id: str
    group: str
    instance_type: str
    market: str
    """Market of the instance, `on-demand` or `spot`. It can differ from the market that the group prefers."""
    zone: str
    address: str
    """Private IPv4 address."""
    gpus: int
    """Number of GPUs in use, each with one rank; 0 for a reader."""
    launched: datetime
    """Time when the instance was launched, from which it costs money."""
    role: str = "train"
    """`train` or `read`."""

    def __post_init__(self) -> None:
        checked.instance(self.instance_id)
        checked.address(self.address)


@dataclass(frozen=True, kw_only=True)
class GpuGroup:
    """Auto Scaling group of a deployment. `size` is the group's number of nodes when it is scaled up."""

    name: str
    scaling_group: str
    size: int
    desired: int
    """Current desired capacity."""
    gpus: int
    """Number of GPUs in use on each node."""
    spot: bool
    """Whether the group prefers spot instances."""
    stays: bool
    """Whether the group's nodes run for the whole life of the deployment (`start: deploy` in the topology)."""
    role: str = "train"
    """`train` or `read`."""
    efa: bool = False
    """Whether the group's nodes have EFA network interfaces."""


def groups(deployment: Deployment, *, readers: bool = False) -> list[GpuGroup]:
    """Return the training groups in alphabetical order. With `readers`, also return the reader groups, after the
    training groups.

    Raises ShoalError if the deployment has no node groups.
    """
    node_groups = [
        GpuGroup(
            name=tags[names.TAG_GROUP],
            scaling_group=group["AutoScalingGroupName"],
            size=group["MaxSize"],
            desired=group["DesiredCapacity"],
            gpus=int(tags[names.TAG_GPUS]),
            spot=tags.get(names.TAG_MARKET) == "spot",
            stays=tags.get(names.TAG_START) == "deploy",
            role=role_of(tags),
            efa=tags.get(names.TAG_EFA) == "true",
        )
        for group, tags in scaling_groups(deployment.session.client("autoscaling"), deployment.name)
    ]
    if not node_groups:
        raise ShoalError(
            f"the deployment '{deployment.name}' has no GPU nodes, because its topology "
            f"'{deployment.topology}' has no `training`"
        )
    chosen = [group for group in node_groups if readers or group.role == "train"]
    return sorted(chosen, key=lambda group: (group.role == "read", group.name))


def role_of(tags: Mapping[str, str]) -> str:
    """Return the role of a group's nodes from its tags: `train` or `read`. Without the tag, as in old deployments, it
    is `train`."""
    return tags.get(names.TAG_ROLE, "train")


def scale_to_zero(
    deployment: Deployment, scaled: Sequence[GpuGroup], *, unless: Callable[[], bool] = lambda: False
) -> None:
    """Scale these groups to zero, except groups with `stays`. Do not wait until the nodes are terminated.

    If `unless` returns True, the groups are needed for something else, and no group is scaled. If AWS does not answer
    the calls of `unless` in time, the groups are scaled.

    Raises ShoalError if some groups could not be scaled; the message contains the commands to scale them. If the user
    interrupts before AWS answers, print the same message and raise Abandoned.
    """
    running = [group for group in scaled if not group.stays]
    until = time.monotonic() + _TO_ZERO_SECONDS
    with _ignoring_signals():
        try:
            client = deployment.session.client("autoscaling")
            with suppress(BotoCoreError, ClientError):
                if retrying(unless, seconds=_TO_ZERO_SECONDS):
                    return
            for group in tuple(running):
                with suppress(BotoCoreError, ClientError):
                    shrink = partial(
                        client.set_desired_capacity, AutoScalingGroupName=group.scaling_group, DesiredCapacity=0
                    )
                    retrying(shrink, seconds=max(0.0, until - time.monotonic()))
                    running.remove(group)
        except KeyboardInterrupt as interrupt:
            for line in running_nodes_warning(running):
                reporter().note(line)
            raise Abandoned(interrupt) from None
    if running:
        raise ShoalError(*running_nodes_warning(running))


def running_nodes_warning(running: Sequence[GpuGroup]) -> list[str]:
    """Return the warning about groups that could not be scaled to zero, and the commands that scale them, one per line.
    Groups with `stays` are left out."""
    return [
        "GPU nodes might still be running and cost money, because AWS did not answer; the deployment's guard stops "
        "them when they have been idle for a while; to stop them sooner, run:",
        *(
            f"  {shlex.join([*_TO_ZERO, '--auto-scaling-group-name', group.scaling_group])}"
            for group in running
            if not group.stays
        ),
    ]


@contextmanager
def _ignoring_signals() -> Iterator[None]:
    """While AWS answers, ignore signals that would stop this process before the groups are scaled to zero."""

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
    """Return the running nodes, sorted by group and instance id, with training nodes before readers. The first node
    serves NFS."""
    tags_of = {
        instance["InstanceId"]: tags
        for group, tags in scaling_groups(deployment.session.client("autoscaling"), deployment.name)
        for instance in group["Instances"]
        if instance["LifecycleState"] == "InService"
    }
    if not tags_of:
        return []
    pages = deployment.session.client("ec2").get_paginator("describe_instances").paginate(InstanceIds=list(tags_of))
    running = [
        GpuNode(
            instance_id=instance["InstanceId"],
            group=tags_of[instance["InstanceId"]][names.TAG_GROUP],
            instance_type=instance["InstanceType"],
            market=instance.get("InstanceLifecycle", "on-demand"),
            zone=instance["Placement"]["AvailabilityZone"],
            address=instance["PrivateIpAddress"],
            gpus=int(tags_of[instance["InstanceId"]][names.TAG_GPUS]),
            launched=instance["LaunchTime"],
            role=role_of(tags_of[instance["InstanceId"]]),
        )
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
        if instance["State"]["Name"] == "running"
    ]
    return sorted(running, key=lambda node: (node.role == "read", node.group, node.instance_id))


def of_role(found: Sequence[GpuNode], role: parts.Role) -> list[GpuNode]:
    """Return the nodes with this role."""
    return [node for node in found if node.role == role]


def scaling_groups(
    autoscaling: "AutoScalingClient", deployment: str
) -> list[tuple["AutoScalingGroupTypeDef", dict[str, str]]]:
    """Return the Auto Scaling groups of a deployment, including groups of readers, each with its tags."""
    pages = autoscaling.get_paginator("describe_auto_scaling_groups").paginate()
    tagged = [(group, read_tags(group.get("Tags"))) for page in pages for group in page["AutoScalingGroups"]]
    return [
        (group, tags)
        for group, tags in tagged
        if tags.get(names.TAG_DEPLOYMENT) == deployment and names.TAG_GROUP in tags
    ]
