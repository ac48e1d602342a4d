"""EC2: records, the formats of requests and responses, and the functions that start and terminate instances."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Operation, Operations, PatchPoint, Record, Table

_ec2 = MinistackModule("services.ec2")

operations = Operations(_ec2, "_ACTION_MAP")

# Records by id (placement groups by name)

addresses: Table = _ec2.take("_addresses")
images: Table = _ec2.take("_images")
"""Images that the account has registered."""
public_images: list[tuple[str | None, ...]] = _ec2.take("_STUB_AMIS")
"""Images that others own: id, name, description, platform, root device, account and alias of the owner."""
instances: Table = _ec2.take("_instances")
internet_gateways: Table = _ec2.take("_internet_gateways")
launch_templates: Table = _ec2.take("_launch_templates")
nat_gateways: Table = _ec2.take("_nat_gateways")
network_interfaces: Table = _ec2.take("_network_interfaces")
placement_groups: Table = _ec2.take("_placement_groups")
route_tables: Table = _ec2.take("_route_tables")
security_groups: Table = _ec2.take("_security_groups")
subnets: Table = _ec2.take("_subnets")
volumes: Table = _ec2.take("_volumes")
vpc_endpoints: Table = _ec2.take("_vpc_endpoints")
vpcs: Table = _ec2.take("_vpcs")

tags: dict[str, list[Record]] = _ec2.take("_tags")
"""Tags of all resources, by resource id."""

default_subnet: str = _ec2.take("_DEFAULT_SUBNET_ID")
"""Id of the subnet for instances that name no subnet."""

# Requests and responses

answer: Callable[[int, str, str], Answer] = _ec2.take("_xml")
"""Returns a response. Arguments: status, name of the root element, content of the element."""

_error: Callable[[str, str, int], Answer] = _ec2.take("_error")


def error(code: str, message: str) -> Answer:
    return _error(code, message, 400)


list_parameter: Callable[[Record, str], list[str]] = _ec2.take("_parse_member_list")
"""Returns the values of a list parameter. Arguments: the request's parameters, name of the list parameter."""

filters: Callable[[Record], dict[str, list[str]]] = _ec2.take("_parse_filters")
"""Returns the filters of a request, each with its values. One value must match."""

has_tags: Callable[[str, dict[str, list[str]]], bool] = _ec2.take("_resource_matches_tag_filters")
"""Returns whether the resource with an id matches the tag filters. Filters of other kinds are ignored."""

# Instances

make_instances: Callable[..., list[Record]] = _ec2.take("_launch_instances_internal")
"""Creates the records of new instances. Arguments: `image_id`, `instance_type`, `subnet_id`, `count`, `key_name`,
`user_data`, `sg_ids`, `iam_profile`."""

instance_profile: Callable[..., tuple[Any, Any]] = _ec2.take("_resolve_iam_instance_profile")
"""Returns an instance profile by `iam_arn` or `iam_name`, and an error response if it does not exist. With
`allow_missing`, a missing profile is no error."""

_terminate: Operation = _ec2.take("_terminate_instances")


def end_instance(identifier: str) -> None:
    """Set the state in the record of an instance to `terminated`."""
    _terminate({"InstanceId.1": [identifier]})


has_agent: PatchPoint[Callable[[str], bool]] = PatchPoint("instance_is_managed", _ec2)
"""Returns whether Systems Manager can run commands on the instance with this id."""

forget_ended: PatchPoint[Callable[[], None]] = PatchPoint("_cleanup_terminated", _ec2)
"""Deletes the records of instances one minute after their termination."""

instance_xml: PatchPoint[Callable[[Record], str]] = PatchPoint("_instance_xml", _ec2)
"""Returns the XML of an instance's record in DescribeInstances."""

# Zones, endpoints, security groups and launch templates

zone_id: PatchPoint[Callable[[str], str]] = PatchPoint("_az_id_for_zone_name", _ec2)
"""Returns the id of the zone with a name."""

zone_of_id: PatchPoint[Callable[[str], str | None]] = PatchPoint("_zone_name_for_az_id", _ec2)
"""Returns the name of the zone with an id, or None if the region does not have the zone."""

read_permissions: PatchPoint[Callable[[Record, str], list[Record]]] = PatchPoint("_parse_ip_permissions", _ec2)
"""Returns the security group rules in a request. Arguments: the request's parameters, name of the list parameter."""

same_rule: PatchPoint[Callable[[Record, Record], bool]] = PatchPoint("_rules_match", _ec2)
"""Returns whether two security group rules are the same."""

read_template: PatchPoint[Callable[..., Record]] = PatchPoint("_parse_lt_data", _ec2)
"""Returns the launch template data in a request, from the parameters with a prefix (default: `LaunchTemplateData`)."""
