"""Auto Scaling group during a scale-up: its nodes, AWS's refusals, and requests for nodes.

Failures from before a request are recognized by the ids of their scaling activities, not by time, because the clocks of
AWS and of this machine differ. Do not change a group back to spot instances while it has instances, because AWS would
replace them.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shoal.aws import fleet
from shoal.aws.capacity import GroupState, Refusal, classify_refusal
from shoal.aws.deployment import Deployment
from shoal.aws.fleet import GpuGroup
from shoal.aws.retry import retrying

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.type_defs import ActivityTypeDef, AutoScalingGroupTypeDef

_RECENT_ACTIVITIES = 50


class ScalingGroup:
    """Node group as described by Auto Scaling. `refresh` replaces the description with a newer one."""

    def __init__(self, deployment: Deployment, node_group: GpuGroup, found: "AutoScalingGroupTypeDef") -> None:
        self.node_group = node_group
        self.name = node_group.name
        self._client = deployment.session.client("autoscaling")
        self._described = found
        self._known: set[str] = set()
        self._refused: list[str] = []
        self._on_demand = False
        self._ec2 = deployment.session.client("ec2")
        self.instance_types = instance_types(self._ec2, found)

    def refresh(self, found: "AutoScalingGroupTypeDef") -> None:
        """Replace the description of the group with a newer one."""
        self._described = found

    @property
    def subnet(self) -> str:
        """Id of the subnet in which the group's instances start."""
        return self._described["VPCZoneIdentifier"].split(",")[0]

    @property
    def empty(self) -> bool:
        """True if the group has no instance, not even one that is terminating."""
        return not self._described["Instances"]

    @property
    def existing(self) -> int:
        """Number of the group's instances that are not terminating."""
        return sum(not each["LifecycleState"].startswith("Terminat") for each in self._described["Instances"])

    def state(self) -> GroupState:
        """Return the state of the group for `capacity.next_action`."""
        refusals = [
            each.get("StatusMessage", "")
            for each in (self._activities() if self.existing < self.node_group.size else ())
            if each["StatusCode"] in ("Failed", "Cancelled") and each["ActivityId"] not in self._known
        ]
        return GroupState(
            name=self.name,
            instance_type=" or ".join(self.instance_types),
            size=self.node_group.size,
            existing=self.existing,
            spot=self.node_group.spot and not self._on_demand,
            refusals=(*self._refused, *refusals),
        )

    def request_nodes(self, subnet: str) -> None:
        """Request all nodes of the group in this subnet, as spot or on-demand instances, whichever the group
        prefers."""
        changes: dict[str, Any] = {"VPCZoneIdentifier": subnet} if subnet != self.subnet else {}
        if self.node_group.spot and self.empty and self._on_demand_base:
            changes["MixedInstancesPolicy"] = self._with_on_demand(0)
        self._on_demand = False
        self._request(self.node_group.size, **changes)

    def request_on_demand(self) -> None:
        """Request the missing nodes as on-demand instances. Running spot instances are kept."""
        size = self.node_group.size
        policy = self._with_on_demand(self._on_demand_base + size - self.existing)
        self._on_demand = True
        self._request(size, MixedInstancesPolicy=policy)

    def scale_to_zero(self) -> None:
        """Scale the group to zero, even if its nodes normally run for the whole life of the deployment."""
        self._request(0)

    @property
    def _on_demand_base(self) -> int:
        return self._described["MixedInstancesPolicy"]["InstancesDistribution"].get("OnDemandBaseCapacity", 0)

    def _with_on_demand(self, count: int) -> dict[str, Any]:
        """Return a mixed instances policy in which the first `count` instances are on-demand instances and all others
        are spot instances."""
        policy: dict[str, Any] = dict(self._described["MixedInstancesPolicy"])
        template = _template(self._described)
        # AWS returns both the id and the name of a launch template, but refuses a request that contains both. A field
        # that the distribution omits could be reset to its default.
        return {
            "LaunchTemplate": {**policy["LaunchTemplate"], "LaunchTemplateSpecification": template},
            "InstancesDistribution": {
                **policy["InstancesDistribution"],
                "OnDemandBaseCapacity": count,
                "OnDemandPercentageAboveBaseCapacity": 0,
            },
        }

    def _request(self, size: int, **changes: Any) -> None:
        """Set the desired capacity. Pass `changes` only if necessary, because AWS checks them with a test launch under
        the caller's permissions. If the zone does not offer the instance types, keep AWS's message for `state`."""
        self._known = {each["ActivityId"] for each in self._activities()}
        call: Any = self._client.update_auto_scaling_group if changes else self._client.set_desired_capacity
        name = self.node_group.scaling_group
        self._refused = []
        try:
            retrying(partial(call, AutoScalingGroupName=name, DesiredCapacity=size, **changes))
        except ClientError as error:
            message = error.response["Error"]["Message"]
            if classify_refusal(message) is not Refusal.NOT_OFFERED:
                raise
            self._refused = [message]

    def _activities(self) -> "list[ActivityTypeDef]":
        call = partial(
            self._client.describe_scaling_activities,
            AutoScalingGroupName=self.node_group.scaling_group,
            MaxRecords=_RECENT_ACTIVITIES,
        )
        return retrying(call)["Activities"]


def scaling_groups(deployment: Deployment, *, readers: bool = False) -> list[ScalingGroup]:
    """Return the deployment's node groups in the order of `fleet.groups`. Raises ShoalError if the deployment has no
    node groups."""
    descriptions = descriptions_by_name(deployment)
    chosen = fleet.groups(deployment, readers=readers)
    return [ScalingGroup(deployment, each, descriptions[each.scaling_group]) for each in chosen]


def descriptions_by_name(deployment: Deployment) -> "dict[str, AutoScalingGroupTypeDef]":
    """Return Auto Scaling's current descriptions of the deployment's groups, by the name of the Auto Scaling group."""
    client = deployment.session.client("autoscaling")
    groups = retrying(partial(fleet.scaling_groups, client, deployment.name))
    return {group["AutoScalingGroupName"]: group for group, _ in groups}


def instance_types(ec2: Any, found: "AutoScalingGroupTypeDef") -> list[str]:
    """Return the instance types that a group's nodes can have. They are in the group's mixed instances policy. A group
    without this policy has them in its launch template.

    Raises LookupError if the group has no launch template, and LookupError or ClientError if the template is deleted.
    """
    if several := found.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {}).get("Overrides"):
        return [each["InstanceType"] for each in several]
    template = _template(found)
    versions = ec2.describe_launch_template_versions(
        LaunchTemplateId=template["LaunchTemplateId"], Versions=[template["Version"]]
    )["LaunchTemplateVersions"]
    return [str(versions[0]["LaunchTemplateData"]["InstanceType"])]


def _template(found: "AutoScalingGroupTypeDef") -> dict[str, str]:
    reference: dict[str, Any] = dict(
        found["MixedInstancesPolicy"]["LaunchTemplate"]["LaunchTemplateSpecification"]
        if "MixedInstancesPolicy" in found
        else found["LaunchTemplate"]
    )
    return {name: reference[name] for name in ("LaunchTemplateId", "Version")}
