"""Status of a deployment: its running resources, as read from AWS, and their cost.

Do not count the nodes of an EMR cluster twice, because they are EC2 instances, too. Read GPU nodes from the node
groups, and the cluster's nodes from EMR.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.node.node_documents import NodeStatus
from common import names
from common.errors import DataError
from corpus.reading.s3 import S3Path, read_text
from infra import topology
from shoal.aws import boot_report, clusters, fleet, guard, scaling_group, stacks
from shoal.aws.account import Account, reason_of
from shoal.aws.deployment import no_such_deployment
from shoal.aws.guard import GuardReport
from shoal.aws.stacks import Stack
from shoal.backends import training_jobs
from shoal.deployments.deletion import Deletion, find_deletion

_PAID_STATES = ["PROVISIONING", "BOOTSTRAPPING", "RUNNING"]
_ENDED = ("TERMINATED", "TERMINATED_WITH_ERRORS")


@dataclass(frozen=True, kw_only=True)
class GroupStatus:
    """Status of a node group. `size` is the maximum number of nodes, and `desired` is the requested number; `running`
    and `ready` count nodes in these states.

    `role` is `train` or `read`. `instance_types` lists the instance types that nodes of the group can have; it is empty
    if the launch template was deleted, and None if AWS did not return it. `nodes` lists the instance type of each
    running node. If a node's boot report is unreadable, the value of `ready` is unknown (None). `statuses` maps
    instance ids to the status that the node last reported, or to the reason why that status is unreadable.
    """

    name: str
    role: str
    instance_types: list[str] | None
    size: int
    desired: int
    running: int
    nodes: list[str]
    ready: int | None
    statuses: Mapping[str, NodeStatus | str]


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """Status of an EMR cluster. `nodes` lists the instance types of all nodes that cost money now, and `most` lists the
    types of all requested nodes."""

    identifier: str
    state: str
    reason: str
    nodes: list[str]
    most: list[str]


@dataclass(frozen=True, kw_only=True)
class Status:
    """Current state of a deployment."""

    name: str
    stack: Stack
    groups: list[GroupStatus]
    cluster: ClusterStatus | None
    guard: GuardReport | None
    jobs: int = 0
    """Number of active SageMaker training jobs."""
    deletion: Deletion | None = None

    @property
    def ends(self) -> datetime | None:
        """Time of the announced or started deletion, else the end of life; None if neither is known."""
        return self.deletion.at if self.deletion else self.guard.ends if self.guard else None

    @property
    def outputs(self) -> dict[str, str]:
        return stacks.outputs(self.stack)

    @property
    def owner(self) -> str:
        """Identity that created the deployment."""
        return (stacks.owner_and_topology(self.stack) or ("unknown", ""))[0]

    @property
    def topology(self) -> str:
        return (stacks.owner_and_topology(self.stack) or ("", "unknown"))[1]

    @property
    def unanswered(self) -> list[str]:
        """Prices that are unknown, because AWS did not return the instance types."""
        return [f"the instance types of the nodes '{each.name}'" for each in self.groups if each.instance_types is None]

    @property
    def rate(self) -> float | None:
        """Current cost in dollars per hour, with spot nodes at on-demand prices.

        None if the guard, which supplies the prices, does not exist or lacks a price.
        """
        return self._priced(
            [([name], 1) for group in self.groups for name in group.nodes],
            self.cluster.nodes if self.cluster else [],
            self.jobs,
        )

    @property
    def most(self) -> float | None:
        """Cost in dollars per hour while everything runs.

        None in the same cases as `rate`, or if a group's instance types are unknown.
        """
        if self.unanswered:
            return None
        return self._priced(
            [(group.instance_types or [], group.size) for group in self.groups],
            self.cluster.most if self.cluster else [],
            max(1, self.jobs),
        )

    def _priced(self, gpu: Iterable[tuple[list[str], int]], emr: Iterable[str], jobs: int) -> float | None:
        if self.guard is None or self.guard.unpriced:
            return None
        prices = self.guard
        nodes = sum(max((prices.gpu.get(name, 0.0) for name in names), default=0.0) * count for names, count in gpu)
        return prices.standing + nodes + jobs * prices.job + sum(prices.emr.get(name, 0.0) for name in emr)


def read_status(deployment: str, account: Account, *, with_guard: bool = True) -> Status:
    """Return the status of a deployment, for any state of its stack. Without `with_guard`, the guard is not read, and
    the status has no prices.

    Raises ShoalError if the stack does not exist, or if one of the guard's parameters is invalid.
    """
    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(deployment))
    if stack is None:
        raise no_such_deployment(deployment, account)
    report = guard.read(account, deployment, stack) if with_guard else None
    return Status(
        name=deployment,
        stack=stack,
        groups=read_groups(account, deployment, stacks.outputs(stack).get(names.OUTPUT_DATA_BUCKET)),
        cluster=_cluster(account, stacks.outputs(stack).get(names.OUTPUT_CLUSTER_ID)),
        guard=report,
        jobs=training_jobs.count_active_jobs(account, deployment, stacks.outputs(stack)),
        deletion=find_deletion(account, stack, report),
    )


def read_groups(account: Account, deployment: str, bucket: str | None) -> list[GroupStatus]:
    """Return the status of each node group of a deployment. The statuses of the nodes are read from the data bucket."""
    statuses = []
    for group, tags in fleet.scaling_groups(account.client("autoscaling"), deployment):
        serving = [each for each in group["Instances"] if each["LifecycleState"] == "InService"]
        running = [each["InstanceId"] for each in serving]
        states = [boot_report.read_report(account, bucket, each).get("state") for each in running]
        statuses.append(
            GroupStatus(
                name=tags[names.TAG_GROUP],
                role=fleet.role_of(tags),
                instance_types=_instance_types(account, group),
                size=group["MaxSize"],
                desired=group["DesiredCapacity"],
                running=len(running),
                nodes=[each["InstanceType"] for each in serving],
                ready=None if boot_report.UNREADABLE in states else states.count("ready"),
                statuses={each: status for each in running if (status := _node_status(account, bucket, each))},
            )
        )
    return sorted(statuses, key=lambda group: group.name)


def _node_status(account: Account, bucket: str | None, instance: str) -> NodeStatus | str | None:
    """Return the status that a node reported, the reason why that status is unreadable, or None if the node reported
    none."""
    try:
        text = read_text(account.client("s3"), S3Path(bucket, names.status_key(instance))) if bucket else None
        return NodeStatus.from_json(text) if text is not None else None
    except DataError as error:
        return f"its status is invalid: {error}"
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":  # the bucket was deleted with its stack
            return None
        return f"Shoal cannot read its status: {reason_of(error)}"


def _instance_types(account: Account, group: Any) -> list[str] | None:
    try:
        return scaling_group.instance_types(account.client("ec2"), group)
    except (ClientError, LookupError) as error:
        # The launch template was deleted before the group: InvalidLaunchTemplateId.NotFound or .VersionNotFound
        # (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html, 2026-11-30).
        deleted = isinstance(error, LookupError) or error.response["Error"]["Code"].endswith("NotFound")
        return [] if deleted else None


def _cluster(account: Account, identifier: str | None) -> ClusterStatus | None:
    if identifier is None:
        return None
    status = clusters.status_of(account.client("emr"), identifier)
    ended = status["State"] in _ENDED
    groups = () if ended else account.items("emr", "list_instance_groups", "InstanceGroups", ClusterId=identifier)
    return ClusterStatus(
        identifier=identifier,
        state=status["State"],
        reason=status.get("StateChangeReason", {}).get("Message", "") if ended else "",
        nodes=[] if ended else _paid(account, identifier),
        most=[group["InstanceType"] for group in groups for _ in range(group["RequestedInstanceCount"])],
    )


def _paid(account: Account, identifier: str) -> list[str]:
    instances = account.items("emr", "list_instances", "Instances", ClusterId=identifier, InstanceStates=_PAID_STATES)
    return [each["InstanceType"] for each in instances]
