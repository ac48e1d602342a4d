"""Operations of Auto Scaling on the groups of `groups.py`, and the CloudFormation type of these groups.

An update changes only the fields that the request names. The zones of a group are those of its subnets.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from shoal_local_aws.faults import capacity, zones
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.nodes import activities, groups, instances, launch_templates
from shoal_local_aws.nodes.groups import AutoScalingGroups, subnets_of, zone_of
from shoal_local_aws.nodes.instances import InstanceRunner
from shoal_local_aws.nodes.machine import Machines
from shoal_local_aws.seams import autoscaling, cloudformation, ec2
from shoal_local_aws.service import Record, RefusedError, answering, parameter

_TEMPLATE_PARTS = ("LaunchTemplateId", "LaunchTemplateName", "Version")
# Rule: The default is on demand, by priority. Source: botocore autoscaling CreateAutoScalingGroup.
_DISTRIBUTION = {
    "OnDemandAllocationStrategy": "prioritized",
    "OnDemandBaseCapacity": 0,
    "OnDemandPercentageAboveBaseCapacity": 100,
    "SpotAllocationStrategy": "lowest-price",
}
_SIZES = {"MinSize", "MaxSize", "DesiredCapacity"}
_NUMBERS = ("MinSize", "MaxSize", "DesiredCapacity", "DefaultCooldown", "HealthCheckGracePeriod")
_DESCRIBED = (
    *("AutoScalingGroupName", "AutoScalingGroupARN", "AvailabilityZones", "VPCZoneIdentifier", "HealthCheckType"),
    *("CreatedTime", "TerminationPolicies", "NewInstancesProtectedFromScaleIn", "Tags", "Instances", *_NUMBERS),
)


def install(machines: Machines, faults: Faults) -> None:
    """Make ministack's groups start instances, and make all instances run on emulated machines."""
    scaling = _Scaling(AutoScalingGroups(InstanceRunner(machines, groups.put_in_service, faults), faults), faults)
    instances.install(scaling.groups.nodes, scaling.groups.terminate_instance)
    launch_templates.install()
    autoscaling.fill.put(lambda _group: None)  # every operation below reconciles the group after it has changed it
    operations = {
        "CreateAutoScalingGroup": scaling.create_group,
        "UpdateAutoScalingGroup": scaling.update_group,
        "SetDesiredCapacity": scaling.set_desired,
        "DescribeAutoScalingGroups": _describe,
        "DeleteAutoScalingGroup": scaling.delete_group,
        "DescribeScalingActivities": activities.describe,
    }
    autoscaling.operations.put(
        **{name: answering(autoscaling.error, operation) for name, operation in operations.items()}
    )
    cloudformation.create_group.put(scaling.create_in_stack)
    cloudformation.delete_group.put(scaling.delete_in_stack)
    handlers = cloudformation.handlers_of("AWS::AutoScaling::AutoScalingGroup")
    handlers.update(create=scaling.create_in_stack, update=scaling.update_in_stack, delete=scaling.delete_in_stack)


class _Scaling:
    """Operations of Auto Scaling on emulated groups, and CloudFormation's handlers of these groups."""

    def __init__(self, scaling_groups: AutoScalingGroups, faults: Faults) -> None:
        self.groups, self._faults = scaling_groups, faults
        self._create, self._delete = (
            autoscaling.operations.now(f"{verb}AutoScalingGroup") for verb in ("Create", "Delete")
        )
        self._create_in_stack, self._delete_in_stack = cloudformation.create_group.now, cloudformation.delete_group.now

    def create_group(self, parameters: Record) -> Any:
        policy = autoscaling.nested_parameters(parameters, "MixedInstancesPolicy")
        template = template_of_policy(policy) or _given_template(parameters)
        check_template(template, policy, _subnets(parameters), self._faults)
        launch_templates.require_permissions(template, _subnets(parameters))
        answer = self._create({**parameters, **{f"LaunchTemplate.{name}": value for name, value in template.items()}})
        if answer[0] < 300:
            group = autoscaling.groups[parameter(parameters, "AutoScalingGroupName")]
            complete_record(group, policy)
            self.groups.reconcile(group)
        return answer

    def update_group(self, parameters: Record) -> Any:
        group = _named(parameters)
        policy = autoscaling.nested_parameters(parameters, "MixedInstancesPolicy")
        template = template_of_policy(policy) or _given_template(parameters)
        sizes = _sizes(group, parameters)
        # A change of sizes must not need ec2:RunInstances, because CloudFormation's delete handler for groups lacks it.
        if not parameters.keys() <= {*_SIZES, "Action", "AutoScalingGroupName", "Version"}:
            subnets = _subnets(parameters) or subnets_of(group)
            chosen = policy if template or policy.get("LaunchTemplate") else group.get("MixedInstancesPolicy") or {}
            check_template(template or group["LaunchTemplate"], chosen, subnets, self._faults)
            launch_templates.require_permissions(template or group["LaunchTemplate"], subnets)
        if template:
            group["LaunchTemplate"] = cloudformation.template_of_group(template)
        group.update(sizes)
        for name in ("HealthCheckType", "VPCZoneIdentifier"):
            if name in parameters:
                group[name] = parameter(parameters, name)
        held = group.get("MixedInstancesPolicy") or {}
        changed = {part: {**(held.get(part) or {}), **values} for part, values in policy.items()}
        complete_record(group, {} if template and not policy else {**held, **changed})
        self.groups.reconcile(group)
        return autoscaling.answer(200, "UpdateAutoScalingGroupResponse", "")

    def set_desired(self, parameters: Record) -> Any:
        group = _named(parameters)
        desired = int(parameter(parameters, "DesiredCapacity"))
        bound, name = ("MinSize", "below min") if desired < group["MinSize"] else ("MaxSize", "above max")
        # Belief: The desired capacity is refused outside of the bounds. No check: it takes a group.
        if not group["MinSize"] <= desired <= group["MaxSize"]:
            message = f"New SetDesiredCapacity value {desired} is {name} value {group[bound]} for the AutoScalingGroup."
            raise RefusedError("ValidationError", message)
        group["DesiredCapacity"] = desired
        self.groups.reconcile(group)
        return autoscaling.answer(200, "SetDesiredCapacityResponse", "")

    def delete_group(self, parameters: Record) -> Any:
        group = _named(parameters)
        name = group["AutoScalingGroupName"]
        # Rule: A group with instances is deleted only by force. Source: ansible/ansible#8503.
        if group["Instances"] and parameter(parameters, "ForceDelete") != "true":
            message = (
                "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s)"
            )
            raise RefusedError("ResourceInUse", f"{message} still in the group.")
        self.groups.end_instances(name)
        return self._delete(parameters)

    def create_in_stack(self, logical: str, properties: Record, stack: str) -> Any:
        name, attributes = self._create_in_stack(logical, _checked(properties, self._faults), stack)
        self._complete(name, properties)
        return name, attributes

    def update_in_stack(self, name: str, old: Record, new: Record, stack: str, logical: str | None = None) -> Any:
        form = _checked(new, self._faults)
        kept = autoscaling.groups.get(name, {}).get("DesiredCapacity")
        name, attributes = cloudformation.update_group(name, _ministack_properties(old), form, stack, logical)
        group = autoscaling.groups[name]
        if kept is not None and "DesiredCapacity" not in new:  # keep a capacity set outside of CloudFormation
            group["DesiredCapacity"] = min(max(kept, group["MinSize"]), group["MaxSize"])
        self._complete(name, new)
        return name, attributes

    def delete_in_stack(self, name: str, properties: Record) -> None:
        self.groups.end_instances(name)
        self._delete_in_stack(name, properties)

    def _complete(self, name: str, properties: Record) -> None:
        complete_record(autoscaling.groups[name], _policy(properties))
        self.groups.reconcile(autoscaling.groups[name])


def _named(parameters: Record) -> Record:
    name = parameter(parameters, "AutoScalingGroupName")
    # Rule: An unknown group is a validation error. Source: aws/aws-sdk-go#1151.
    if name not in autoscaling.groups:
        raise RefusedError("ValidationError", f"AutoScalingGroup name not found - {name}")
    return autoscaling.groups[name]


def _given_template(parameters: Record) -> Record:
    parts = {name: parameter(parameters, f"LaunchTemplate.{name}") for name in _TEMPLATE_PARTS}
    return {name: value for name, value in parts.items() if value}


def _subnets(parameters: Record) -> list[str]:
    return subnets_of({"VPCZoneIdentifier": parameter(parameters, "VPCZoneIdentifier")})


def template_of_policy(policy: Mapping[str, Any]) -> Record:
    """Return the launch template that a mixed-instances policy names, or an empty record."""
    return dict((policy.get("LaunchTemplate") or {}).get("LaunchTemplateSpecification") or {})


def check_template(
    reference: Mapping[str, Any], policy: Mapping[str, Any], subnets: Sequence[str], faults: Faults
) -> None:
    """Raise RefusedError if a group could not start an instance from this launch template in one of its zones."""
    data = launch_templates.data_of(reference)
    launch_templates.placement_group(data)
    interfaces = data.get("NetworkInterfaces") or [{}]
    security_groups = data.get("SecurityGroupIds") or interfaces[0].get("Groups") or ()
    for subnet in subnets:
        # Rule: The subnets of a group exist. Source: hashicorp/terraform#471.
        if subnet not in ec2.subnets:
            raise RefusedError("ValidationError", f"The subnet ID '{subnet}' does not exist")
        groups_of = {ec2.security_groups[each]["VpcId"] for each in security_groups if each in ec2.security_groups}
        # Rule: Security groups are in the VPC of the subnets. Source: mludvig/aws-ethereum-miner#12.
        if groups_of - {ec2.subnets[subnet]["VpcId"]}:
            raise RefusedError(
                "ValidationError",
                "One or more security groups in the launch template are not linked to the VPCs configured in the Auto "
                "Scaling group",
            )
    types = capacity.instance_types(policy, data, market=capacity.ON_DEMAND, running=())
    # Rule: Each zone must offer each type. Source: zalando-incubator/kubernetes-on-aws#2025.
    if refusal := zones.refusal(faults, [*map(zone_of, subnets)], types):
        raise RefusedError("ValidationError", f"You must use a valid fully-formed launch template. {refusal}")


def _sizes(group: Record, parameters: Record) -> Record:
    """Return the sizes of a group after an update."""
    given = {name: int(value) for name in _NUMBERS if (value := parameter(parameters, name)) != ""}
    low, high = (int({**group, **given}[name]) for name in ("MinSize", "MaxSize"))
    # Belief: A minimum above the maximum is refused. No check: AWS may first refuse the group of the request.
    if low > high:
        raise RefusedError("ValidationError", f"Max bound, {high}, must be greater than or equal to min bound, {low}")
    # Rule: New bounds move the desired capacity. Source: botocore autoscaling UpdateAutoScalingGroup.
    desired = given.get("DesiredCapacity", min(max(group["DesiredCapacity"], low), high))
    # Rule: A desired capacity outside of the bounds is refused. Source: convox/praxis#258.
    if not low <= desired <= high:
        message = f"Desired capacity:{desired} must be between the specified min size:{low} and max size:{high}"
        raise RefusedError("ValidationError", message)
    return {**given, "DesiredCapacity": desired}


def complete_record(group: Record, policy: Mapping[str, Any]) -> None:
    """Add the fields that ministack omits to the record of a group."""
    group["MixedInstancesPolicy"] = policy and {
        "LaunchTemplate": {**policy["LaunchTemplate"], "LaunchTemplateSpecification": group["LaunchTemplate"]},
        "InstancesDistribution": {**_DISTRIBUTION, **(policy.get("InstancesDistribution") or {})},
    }
    if subnets := subnets_of(group):
        group["AvailabilityZones"] = sorted({zone_of(subnet) for subnet in subnets})


# DescribeAutoScalingGroups


def _describe(parameters: Record) -> Any:
    names = autoscaling.list_parameter(parameters, "AutoScalingGroupNames")
    filters = _filters(parameters)
    found = [
        _described(group)
        for name, group in autoscaling.groups.items()
        if (not names or name in names) and _matches(group, filters)
    ]
    operation = "DescribeAutoScalingGroups"
    body = f"<AutoScalingGroups>{autoscaling.to_xml(found)}</AutoScalingGroups>"
    return autoscaling.answer(200, f"{operation}Response", f"<{operation}Result>{body}</{operation}Result>")


def _described(group: Record) -> Record:
    """Return a group as AWS describes it: with a launch template, or with the policy that contains the template."""
    policy = group.get("MixedInstancesPolicy")
    source = {"MixedInstancesPolicy": policy} if policy else {"LaunchTemplate": group["LaunchTemplate"]}
    return {name: group[name] for name in _DESCRIBED} | source


def _filters(parameters: Record) -> dict[str, list[str]]:
    """Return the filters of a request (tag-key, tag-value or tag:KEY), each with its values. One value must match."""
    found = {}
    number = 1
    while name := parameter(parameters, f"Filters.member.{number}.Name"):
        found[name] = autoscaling.list_parameter(parameters, f"Filters.member.{number}.Values")
        number += 1
    return found


def _matches(group: Record, filters: Mapping[str, list[str]]) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
    held = {"tag-key": set(tags), "tag-value": set(tags.values())}
    held |= {f"tag:{key}": {value} for key, value in tags.items()}
    return all(held.get(name, set()) & set(values) for name, values in filters.items())


def _checked(properties: Record, faults: Faults) -> Record:
    """Return the properties of a group in ministack's format. Raises RefusedError as Auto Scaling's API does."""
    form, subnets = _ministack_properties(properties), properties.get("VPCZoneIdentifier") or []
    check_template(form.get("LaunchTemplate") or {}, _policy(properties), subnets, faults)
    return form


def _policy(properties: Record) -> Record:
    return dict(properties.get("MixedInstancesPolicy") or {})


def _ministack_properties(properties: Record) -> Record:
    """Return the properties of a group in ministack's format. The launch template of a mixed-instances policy becomes
    that of the group. Tags of the stack are propagated to instances."""
    plain = {"LaunchTemplate": template} if (template := template_of_policy(_policy(properties))) else {}
    tags = [{"PropagateAtLaunch": True, **tag} for tag in properties.get("Tags") or []]
    return {**properties, **plain, "Tags": tags}
