"""Emulates auto scaling groups, which maintain their desired capacity.

A group starts instances from its launch template, in its subnets and on the market of its policy. It replaces instances
that a client terminates. A launch without capacity causes a failed activity. The group retries the launch after each
change of the group, and after some seconds.
"""

import logging
import threading
import time
from typing import Any

from shoal_local_aws.faults import capacity, quotas
from shoal_local_aws.faults.capacity import NoCapacityError
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.nodes import activities, instances, launch_templates
from shoal_local_aws.nodes.instances import InstanceRunner
from shoal_local_aws.permissions.launches import specified_tags
from shoal_local_aws.seams import autoscaling, ec2, requests
from shoal_local_aws.service import Record, RefusedError

_logger = logging.getLogger(__name__)
_GROUP_TAG = "aws:autoscaling:groupName"
# Belief: A group repeats a failed launch after a few minutes. No check: it takes a type without capacity.
_AGAIN_SECONDS = 5.0


class AutoScalingGroups:
    """Keeps auto scaling groups at their desired capacity."""

    def __init__(self, nodes: InstanceRunner, faults: Faults) -> None:
        self.nodes = nodes
        self._faults = faults
        self._lock = threading.RLock()
        self._waiting: set[str] = set()

    def reconcile(self, group: Record) -> None:
        """Start or terminate instances until a group has its desired capacity in its subnets.

        The group does not change if its launch template no longer exists. On AWS the launch would fail.
        """
        with self._lock:
            members = group["Instances"]
            # Belief: A smaller group ends its newest instances. No check: AWS's choice depends on zones and templates.
            while len(members) > group["DesiredCapacity"]:
                self._end(group, members[-1]["InstanceId"])
            while len(members) < group["DesiredCapacity"] and self._grow(group):
                pass
            # Rule: A replacement starts before the termination. Source: botocore autoscaling UpdateAutoScalingGroup.
            self._leave_other_subnets(group)

    def end_instances(self, name: str) -> None:
        """Terminate all instances of the group `name` before its deletion."""
        group = autoscaling.groups.get(name)
        if group is not None:
            group["DesiredCapacity"] = 0
            self.reconcile(group)

    def terminate_instance(self, identifier: str) -> None:
        """Terminate an instance. If it belongs to a group, the group replaces it to maintain the desired capacity."""
        with self._lock:
            group = group_of(identifier)
            if group is None:
                self.nodes.terminate(identifier)
                return
            self._end(group, identifier)
            self.reconcile(group)

    def _end(self, group: Record, identifier: str) -> None:
        group["Instances"][:] = [member for member in group["Instances"] if member["InstanceId"] != identifier]
        self.nodes.terminate(identifier)
        activities.note(group, f"Terminating EC2 instance: {identifier}")

    def _leave_other_subnets(self, group: Record) -> None:
        """Replace instances in subnets that the group no longer has. Start a replacement before the termination."""
        subnets = subnets_of(group)
        for member in [*group["Instances"]]:
            record = ec2.instances.get(member["InstanceId"])
            if record is not None and subnets and record["SubnetId"] not in subnets:
                if not self._grow(group):
                    return
                self._end(group, member["InstanceId"])

    def _grow(self, group: Record) -> bool:
        """Start one more instance in the first subnet with capacity. Return whether an instance started."""
        subnets = subnets_of(group) or [ec2.default_subnet]
        turn = len(group["Instances"]) % len(subnets)
        subnets = [*subnets[turn:], *subnets[:turn]]
        failure: Exception | None = None
        # Rule: After a failed launch in a zone, a group tries its other zones. Source: "Add an Availability Zone".
        for subnet in subnets:
            try:
                record = _launch(group, subnet, self._faults)
            except (NoCapacityError, RefusedError) as error:
                failure = failure or error
                continue
            group["Instances"].append(_member(record))
            self.nodes.start(record)
            activities.note(group, f"Launching a new EC2 instance: {record['InstanceId']}")
            return True
        activities.note(group, "Launching a new EC2 instance", str(failure))
        if isinstance(failure, NoCapacityError):
            self._wait(group)
        else:
            _logger.warning("group %s cannot start an instance: %s", group["AutoScalingGroupName"], failure)
        return False

    def _wait(self, group: Record) -> None:
        """Retry the launch in the background after a few seconds."""
        if group["AutoScalingGroupARN"] not in self._waiting:
            self._waiting.add(group["AutoScalingGroupARN"])
            requests.spawn_background(self._try_again, group, thread_name=f"wait-{group['AutoScalingGroupName']}")

    def _try_again(self, group: Record) -> None:
        time.sleep(_AGAIN_SECONDS)
        with self._lock:
            self._waiting.discard(group["AutoScalingGroupARN"])
            if autoscaling.groups.get(group["AutoScalingGroupName"]) is group:
                self.reconcile(group)


def group_of(instance: str) -> Record | None:
    for group in autoscaling.groups.values():
        if any(member["InstanceId"] == instance for member in group["Instances"]):
            return group
    return None


def put_in_service(instance: str) -> None:
    """Mark a running instance as `InService` in its group, if it belongs to one."""
    for group in autoscaling.groups.values():
        for member in group["Instances"]:
            if member["InstanceId"] == instance:
                member["LifecycleState"] = "InService"


def zone_of(subnet: str) -> str:
    return str(ec2.subnets.get(subnet, {}).get("AvailabilityZone", f"{requests.region()}a"))


def subnets_of(group: Record) -> list[str]:
    """Return the ids of a group's subnets in the order of its record."""
    return [subnet for subnet in group["VPCZoneIdentifier"].split(",") if subnet]


def _choose(group: Record, data: Record, subnet: str, faults: Faults) -> tuple[str, str]:
    """Return the market and the instance type of a group's next instance in a subnet.

    Raises NoCapacityError if no type has capacity, and RefusedError if the placement group no longer exists.
    """
    policy = group.get("MixedInstancesPolicy") or {}
    on_demand = sum(
        "InstanceLifecycle" not in ec2.instances.get(member["InstanceId"], {}) for member in group["Instances"]
    )
    market = capacity.market(policy, data, desired=group["DesiredCapacity"], on_demand=on_demand)
    zone = zone_of(subnet)
    place = launch_templates.placement_group(data)
    if place:
        capacity.require_together(
            ec2.placement_groups[place], zone=zone, occupied=instances.zones_of_placement_group(place)
        )
    failure = None
    running = [member["InstanceType"] for member in group["Instances"]]
    for instance_type in capacity.instance_types(policy, data, market=market, running=running):
        try:
            capacity.require(faults, zone=zone, instance_type=instance_type, market=market)
            quotas.require_vcpus(faults, instances.at_work(), instance_type=instance_type, market=market)
        except NoCapacityError as error:
            failure = failure or error
        else:
            return market, instance_type
    assert failure is not None
    raise failure


def _launch(group: Record, subnet: str, faults: Faults) -> Record:
    """Create and return the record of a new instance, from the group's launch template."""
    data = launch_templates.data_of(group["LaunchTemplate"])
    zone = zone_of(subnet)
    place = launch_templates.placement_group(data)
    market, instance_type = _choose(group, data, subnet, faults)
    interfaces = data.get("NetworkInterfaces") or [{}]
    profile = data.get("IamInstanceProfile") or {}
    resolved, _error = ec2.instance_profile(
        iam_arn=profile.get("Arn", ""), iam_name=profile.get("Name", ""), allow_missing=True
    )
    record: Record = ec2.make_instances(
        image_id=data.get("ImageId", ""),
        instance_type=instance_type,
        subnet_id=subnet,
        count=1,
        key_name=data.get("KeyName", ""),
        user_data=data.get("UserData", ""),
        sg_ids=data.get("SecurityGroupIds") or interfaces[0].get("Groups"),
        iam_profile=resolved,
    )[0]
    record["Placement"]["AvailabilityZone"] = zone
    if place:
        record["Placement"]["GroupName"] = place
    if market == capacity.SPOT:
        record["InstanceLifecycle"] = "spot"
    ec2.tags[record["InstanceId"]] = _instance_tags(group, data)
    for mapping in record["BlockDeviceMappings"]:
        volume = mapping["Ebs"]["VolumeId"]
        ec2.volumes[volume]["AvailabilityZone"] = zone
        ec2.tags[volume] = specified_tags(data, "volume")
    return record


def _member(record: Record) -> Record:
    return {
        "InstanceId": record["InstanceId"],
        "InstanceType": record["InstanceType"],
        "LifecycleState": "Pending",
        "HealthStatus": "Healthy",
        "AvailabilityZone": record["Placement"]["AvailabilityZone"],
    }


def _instance_tags(group: Record, data: Record) -> list[Any]:
    tags = {tag["Key"]: tag["Value"] for tag in specified_tags(data, "instance")}
    tags |= {tag["Key"]: tag["Value"] for tag in group["Tags"] if tag["PropagateAtLaunch"]}
    tags[_GROUP_TAG] = group["AutoScalingGroupName"]
    return [{"Key": key, "Value": value} for key, value in tags.items()]
