"""Which GPU nodes a deployment has: raise its groups, wait until the nodes are ready, lower them again.

The easy mistake is to leave them up. `raised` lowers the groups on the way out, whatever happened inside, and
neither a second Ctrl-C nor an error of one group keeps it from the others.
"""

import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap import objects
from bootstrap.deployment import Deployment
from bootstrap.errors import ShoalError
from bootstrap.objects import Place
from bootstrap.patience import patiently
from infra import topology

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
READY_SECONDS = 900
_LOWER_SECONDS = 120
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Node:
    """An instance that runs."""

    instance_id: str
    group: str
    instance_type: str
    address: str
    """Its private address."""
    gpus: int
    """How many of its GPUs are used: a rank each."""


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """An auto scaling group of the deployment; `size` is how many nodes it has when raised."""

    name: str
    scaling_group: str
    size: int
    desired: int
    """How many it is asked for now."""


def groups(deployment: Deployment) -> list[NodeGroup]:
    """The node groups, in alphabetical order. Raises ShoalError when there is none."""
    found = [
        NodeGroup(
            name=tags[topology.TAG_GROUP],
            scaling_group=group["AutoScalingGroupName"],
            size=group["MaxSize"],
            desired=group["DesiredCapacity"],
        )
        for group, tags in _scaling_groups(deployment)
    ]
    if not found:
        raise ShoalError(
            f"the deployment '{deployment.name}' has no GPU nodes: its topology '{deployment.topology}' has no training"
        )
    return sorted(found, key=lambda group: group.name)


@contextmanager
def raised(deployment: Deployment, progress: Callable[[int, int], None]) -> Iterator[list[Node]]:
    """All nodes of the deployment, ready for work; on leaving its groups go down to no nodes.

    `progress` is called with the nodes that are ready and those that are wanted. Raises ShoalError when a node
    fails to boot, with the last line of its log, or when they are not all ready after 15 minutes.
    """
    wanted = groups(deployment)
    client = deployment.session.client("autoscaling")
    try:
        for group in wanted:
            client.set_desired_capacity(AutoScalingGroupName=group.scaling_group, DesiredCapacity=group.size)
        yield _wait_until_ready(deployment, sum(group.size for group in wanted), progress)
    finally:
        lower(deployment, wanted)


def lower(deployment: Deployment, raised_groups: Sequence[NodeGroup]) -> None:
    """Ask these groups for no nodes; returns at once, as AWS ends them by itself.

    Raises ShoalError with the commands to type for the groups that could not be lowered.
    """
    client = deployment.session.client("autoscaling")
    still_up = []
    with _undisturbed():
        for group in raised_groups:
            try:
                patiently(partial(_ask_for_none, client, group), seconds=_LOWER_SECONDS)
            except (BotoCoreError, ClientError):
                still_up.append(group.scaling_group)
    if still_up:
        commands = "; ".join(
            f"aws autoscaling set-desired-capacity --desired-capacity 0 --auto-scaling-group-name {name}"
            for name in still_up
        )
        raise ShoalError(f"GPU nodes may still run, and cost money, because AWS could not be reached; type: {commands}")


def _ask_for_none(client: "AutoScalingClient", group: NodeGroup) -> None:
    client.set_desired_capacity(AutoScalingGroupName=group.scaling_group, DesiredCapacity=0)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore signals that would end this process, as long as it is about to save money."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def nodes(deployment: Deployment) -> list[Node]:
    """The nodes that run now, by group and then by instance id."""
    tags_of = {
        instance["InstanceId"]: tags
        for group, tags in _scaling_groups(deployment)
        for instance in group["Instances"]
        if instance["LifecycleState"] == "InService"
    }
    if not tags_of:
        return []
    pages = deployment.session.client("ec2").get_paginator("describe_instances").paginate(InstanceIds=list(tags_of))
    running = [
        Node(
            instance_id=instance["InstanceId"],
            group=tags_of[instance["InstanceId"]][topology.TAG_GROUP],
            instance_type=instance["InstanceType"],
            address=instance["PrivateIpAddress"],
            gpus=int(tags_of[instance["InstanceId"]][topology.TAG_GPUS]),
        )
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
        if instance["State"]["Name"] == "running"
    ]
    return sorted(running, key=lambda node: (node.group, node.instance_id))


def _wait_until_ready(deployment: Deployment, wanted: int, progress: Callable[[int, int], None]) -> list[Node]:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        running = patiently(partial(nodes, deployment))
        states = {node.instance_id: patiently(partial(_state, deployment, node)) for node in running}
        ready = sum(state == "ready" for state in states.values())
        progress(ready, wanted)
        if ready == wanted:
            return running
        if time.monotonic() > deadline:
            booting = len(states) - ready
            raise ShoalError(
                f"only {ready} of {wanted} GPU nodes were ready after {READY_SECONDS // 60} minutes, {booting} were "
                f"booting, and {wanted - len(states)} never started; is "
                "there capacity and quota for the instance types? see the groups' activity in the console"
            )
        time.sleep(_PAUSE_SECONDS)


def _state(deployment: Deployment, node: Node) -> str | None:
    """What the node's first boot reported: ready, or nothing yet. Raises ShoalError when it reported a failure."""
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    place = Place(bucket, f"{topology.NODES_PREFIX}{node.instance_id}.json")
    report = objects.read_text(deployment.session.client("s3"), place)
    if report is None:
        return None
    said = json.loads(report)
    if said["state"] == "failed":
        last = said["log"].strip().splitlines()[-1:] or ["its log is empty"]
        raise ShoalError(f"the node {node.instance_id} ({node.group}) failed to boot: {last[0]}; all of it: {place}")
    return str(said["state"])


def _scaling_groups(deployment: Deployment) -> list[tuple["AutoScalingGroupTypeDef", dict[str, str]]]:
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
