"""Plays auto scaling groups: each always has as many instances as it desires.

They start from the group's launch template, and one that is terminated from outside is replaced, as on AWS.
"""

import logging
from collections.abc import Mapping
from typing import Any

from ministack.core.responses import get_region
from ministack.services import autoscaling, ec2
from ministack.services.cloudformation import provisioners

from embedded import nodes, templates
from embedded.machine import Machines
from embedded.nodes import Nodes
from embedded.service import Record, RefusedError
from embedded.templates import specified_tags

_logger = logging.getLogger(__name__)
_TEMPLATE_PARTS = ("LaunchTemplateId", "LaunchTemplateName", "Version")
_GROUP_TAG = "aws:autoscaling:groupName"


class Groups:
    """Keeps groups at their desired capacity."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def follow(self, group: Record) -> None:
        """Start or end instances until a group has its desired capacity; the newest end first.

        One whose template or image has gone since it was made stays as it is, as on AWS, where the attempt fails.
        """
        members = group["Instances"]
        while len(members) > group["DesiredCapacity"]:
            self._nodes.terminate(members.pop()["InstanceId"])
        while len(members) < group["DesiredCapacity"]:
            try:
                record = _launch(group, number=len(members))
            except RefusedError as refusal:
                _logger.warning("group %s cannot start an instance: %s", group["AutoScalingGroupName"], refusal)
                return
            members.append(_member(group, record))
            self._nodes.start(record)

    def disband(self, name: str) -> None:
        """End all instances of a group that is going to be deleted."""
        group = autoscaling._asgs.get(name)
        if group is not None:
            group["DesiredCapacity"] = 0
            self.follow(group)

    def leave(self, identifier: str) -> None:
        """Terminate an instance; its group, if it has one, starts another if it still desires as many."""
        group = _group_of(identifier)
        if group is not None:
            group["Instances"][:] = [member for member in group["Instances"] if member["InstanceId"] != identifier]
        self._nodes.terminate(identifier)
        if group is not None:
            self.follow(group)


def install(machines: Machines) -> None:
    """Put instances into ministack's groups, and machines behind all instances."""
    played = Nodes(machines, running=lambda identifier: _update_member(identifier, LifecycleState="InService"))
    groups = Groups(played)
    nodes.install(played, groups.leave)
    autoscaling._reconcile_instances = groups.follow
    _install_operations(groups)
    _install_resource_type(groups)


def _launch(group: Record, *, number: int) -> Record:
    """An instance's record, from the group's launch template."""
    data = templates.data_of(group["LaunchTemplate"])
    image = templates.image(data.get("ImageId", ""))
    subnets = [subnet for subnet in group["VPCZoneIdentifier"].split(",") if subnet]
    subnet = subnets[number % len(subnets)] if subnets else ec2._DEFAULT_SUBNET_ID
    interfaces = data.get("NetworkInterfaces") or [{}]
    profile = data.get("IamInstanceProfile") or {}
    resolved, _error = ec2._resolve_iam_instance_profile(
        iam_arn=profile.get("Arn", ""), iam_name=profile.get("Name", ""), allow_missing=True
    )
    record: Record = ec2._launch_instances_internal(
        image_id=image,
        instance_type=data.get("InstanceType", "m1.small"),
        subnet_id=subnet,
        count=1,
        key_name=data.get("KeyName", ""),
        user_data=data.get("UserData", ""),
        sg_ids=data.get("SecurityGroupIds") or interfaces[0].get("Groups"),
        iam_profile=resolved,
    )[0]
    record["Placement"]["AvailabilityZone"] = ec2._subnets.get(subnet, {}).get("AvailabilityZone", f"{get_region()}a")
    ec2._tags[record["InstanceId"]] = _instance_tags(group, data)
    for mapping in record["BlockDeviceMappings"]:
        ec2._tags[mapping["Ebs"]["VolumeId"]] = specified_tags(data, "volume")
    return record


def _check_template(reference: Mapping[str, Any]) -> None:
    """Refuse, by a RefusedError, what a group could not start an instance from."""
    templates.image(templates.data_of(reference).get("ImageId", ""))


def _member(group: Record, record: Record) -> Record:
    return {
        "InstanceId": record["InstanceId"],
        "LifecycleState": "Pending",
        "HealthStatus": "Healthy",
        "AvailabilityZone": record["Placement"]["AvailabilityZone"],
        "ProtectedFromScaleIn": group["NewInstancesProtectedFromScaleIn"],
        "LaunchTemplate": group["LaunchTemplate"],
    }


def _group_of(instance: str) -> Record | None:
    for group in autoscaling._asgs.values():
        if any(member["InstanceId"] == instance for member in group["Instances"]):
            found: Record = group
            return found
    return None


def _update_member(instance: str, **values: str) -> None:
    for member in (_group_of(instance) or {"Instances": []})["Instances"]:
        if member["InstanceId"] == instance:
            member.update(values)


def _instance_tags(group: Record, data: Record) -> list[Record]:
    tags = {tag["Key"]: tag["Value"] for tag in specified_tags(data, "instance")}
    tags |= {tag["Key"]: tag["Value"] for tag in group["Tags"] if tag["PropagateAtLaunch"]}
    tags[_GROUP_TAG] = group["AutoScalingGroupName"]
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _install_operations(groups: Groups) -> None:
    create, delete, describe = (
        autoscaling._ACTION_MAP[f"{verb}AutoScalingGroup{s}"]
        for verb, s in (("Create", ""), ("Delete", ""), ("Describe", "s"))
    )

    def create_group(parameters: Record) -> Any:
        parts = {name: autoscaling._p(parameters, f"LaunchTemplate.{name}") for name in _TEMPLATE_PARTS}
        try:
            _check_template({name: value for name, value in parts.items() if value})
        except RefusedError as refusal:
            return autoscaling._error(refusal.code, str(refusal))
        return create(parameters)

    def describe_filtered(parameters: Record) -> Any:
        wanted = _filters(parameters)
        if not wanted:
            return describe(parameters)
        names = autoscaling._parse_member_list(parameters, "AutoScalingGroupNames") or list(autoscaling._asgs)
        chosen = [name for name in names if name in autoscaling._asgs and _matches(autoscaling._asgs[name], wanted)]
        if not chosen:  # without a name ministack would describe them all
            name = "DescribeAutoScalingGroups"
            return autoscaling._xml(200, f"{name}Response", f"<{name}Result><AutoScalingGroups/></{name}Result>")
        numbered = {f"AutoScalingGroupNames.member.{number}": name for number, name in enumerate(chosen, start=1)}
        return describe(numbered)

    def delete_group(parameters: Record) -> Any:
        name = autoscaling._p(parameters, "AutoScalingGroupName")
        group = autoscaling._asgs.get(name)
        if group is None:
            return autoscaling._error("ValidationError", f"AutoScalingGroup name not found - {name}")
        if group["Instances"] and autoscaling._p(parameters, "ForceDelete") != "true":
            return autoscaling._error("ResourceInUse", f"You cannot delete {name} while it has instances.")
        groups.disband(name)
        return delete(parameters)

    def terminate_in_group(parameters: Record) -> Any:
        identifier = autoscaling._p(parameters, "InstanceId")
        group = _group_of(identifier)
        if group is None:
            return autoscaling._error("ValidationError", f"Instance Id not found - No managed instance {identifier}")
        if autoscaling._p(parameters, "ShouldDecrementDesiredCapacity") == "true":
            if group["DesiredCapacity"] <= group["MinSize"]:
                return autoscaling._error("ValidationError", "The desired capacity would fall below the minimum.")
            group["DesiredCapacity"] -= 1
        groups.leave(identifier)
        name = "TerminateInstanceInAutoScalingGroup"
        return autoscaling._xml(200, f"{name}Response", f"<{name}Result/>")

    autoscaling._ACTION_MAP["CreateAutoScalingGroup"] = create_group
    autoscaling._ACTION_MAP["DescribeAutoScalingGroups"] = describe_filtered
    autoscaling._ACTION_MAP["DeleteAutoScalingGroup"] = delete_group
    autoscaling._ACTION_MAP["TerminateInstanceInAutoScalingGroup"] = terminate_in_group


def _filters(parameters: Record) -> dict[str, list[str]]:
    """The request's filters: tag-key, tag-value or tag:KEY, each with the values of which one must match."""
    found = {}
    number = 1
    while name := autoscaling._p(parameters, f"Filters.member.{number}.Name"):
        found[name] = autoscaling._parse_member_list(parameters, f"Filters.member.{number}.Values")
        number += 1
    return found


def _matches(group: Record, filters: Mapping[str, list[str]]) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
    held = {"tag-key": set(tags), "tag-value": set(tags.values())}
    held |= {f"tag:{key}": {value} for key, value in tags.items()}
    return all(held.get(name, set()) & set(values) for name, values in filters.items())


def _install_resource_type(groups: Groups) -> None:
    create, change, remove = provisioners._asg_create, provisioners._asg_update, provisioners._asg_delete

    def created(logical: str, properties: Record, stack: str) -> Any:
        played = _played(properties)
        _check_template(played.get("LaunchTemplate") or {})
        name, attributes = create(logical, played, stack)
        groups.follow(autoscaling._asgs[name])
        return name, attributes

    def changed(name: str, old: Record, new: Record, stack: str, logical: str | None = None) -> Any:
        played = _played(new)
        _check_template(played.get("LaunchTemplate") or {})
        kept = autoscaling._asgs.get(name, {}).get("DesiredCapacity")
        name, attributes = change(name, _played(old), played, stack, logical)
        group = autoscaling._asgs[name]
        if kept is not None and "DesiredCapacity" not in new:  # what was scaled by hand stays so
            group["DesiredCapacity"] = min(max(kept, group["MinSize"]), group["MaxSize"])
        groups.follow(group)
        return name, attributes

    def removed(name: str, properties: Record) -> None:
        groups.disband(name)
        remove(name, properties)

    provisioners._asg_create, provisioners._asg_delete = created, removed
    provisioners._RESOURCE_HANDLERS["AWS::AutoScaling::AutoScalingGroup"].update(
        create=created, update=changed, delete=removed
    )


def _played(properties: Record) -> Record:
    """A group's properties in the form that ministack takes.

    The launch template of a mixed-instances policy stands where a plain one does, and the tags that come from the
    stack, which say nothing of it, propagate to instances.
    """
    policy = properties.get("MixedInstancesPolicy")
    plain = {"LaunchTemplate": policy["LaunchTemplate"]["LaunchTemplateSpecification"]} if policy else {}
    tags = [{"PropagateAtLaunch": True, **tag} for tag in properties.get("Tags") or []]
    return {**properties, **plain, "Tags": tags}
