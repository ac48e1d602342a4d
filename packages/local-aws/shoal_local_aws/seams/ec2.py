"""EC2: its records, the formats of its requests and answers, and the functions that start and end instances."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Operation, Operations, Record, Seam, Table

_ec2 = MinistackModule("services.ec2")

operations = Operations(_ec2, "_ACTION_MAP")

# Records, by their ids; placement groups by their names

addresses: Table = _ec2.take("_addresses")
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
"""The tags of everything, by its id."""

default_subnet: str = _ec2.take("_DEFAULT_SUBNET_ID")
"""The id of the subnet for instances that name none."""

# Requests and answers

answer: Callable[[int, str, str], Answer] = _ec2.take("_xml")
"""A result: its status, the name of its element, and the element's content."""

error: Callable[[str, str, int], Answer] = _ec2.take("_error")
"""An error: its code, its message, its status."""

list_parameter: Callable[[Record, str], list[str]] = _ec2.take("_parse_member_list")
"""The values of a request's list of a name."""

filters: Callable[[Record], dict[str, list[str]]] = _ec2.take("_parse_filters")
"""The filters of a request, each with the values of which one must match."""

has_tags: Callable[[str, dict[str, list[str]]], bool] = _ec2.take("_resource_matches_tag_filters")
"""Whether the resource with an id matches the tag filters; other filters are ignored."""

# Instances

make_instances: Callable[..., list[Record]] = _ec2.take("_launch_instances_internal")
"""Records of new instances: `image_id`, `instance_type`, `subnet_id`, `count`, `key_name`, `user_data`, `sg_ids`,
`iam_profile`."""

instance_profile: Callable[..., tuple[Any, Any]] = _ec2.take("_resolve_iam_instance_profile")
"""An instance profile by `iam_arn` or `iam_name`, and an error answer; `allow_missing` allows neither to be given."""

_terminate: Operation = _ec2.take("_terminate_instances")


def end_instance(identifier: str) -> None:
    """Set the state of an instance's record to terminated."""
    _terminate({"InstanceId.1": [identifier]})


forget_ended: Seam[Callable[[], None]] = Seam("_cleanup_terminated", _ec2)
"""Forgets instances a minute after their end."""

instance_xml: Seam[Callable[[Record], str]] = Seam("_instance_xml", _ec2)
"""The XML of an instance's record in DescribeInstances."""

# Endpoints, security groups and launch templates

endpoint_xml: Seam[Callable[..., str]] = Seam("_vpce_fields_xml", _ec2)
"""The XML of a VPC endpoint's record, in an element `tag`."""

read_permissions: Seam[Callable[[Record, str], list[Record]]] = Seam("_parse_ip_permissions", _ec2)
"""The rules that a request lists under a name."""

same_rule: Seam[Callable[[Record, Record], bool]] = Seam("_rules_match", _ec2)
"""Whether two rules are the same."""

read_template: Seam[Callable[..., Record]] = Seam("_parse_lt_data", _ec2)
"""The launch template's data in a request, below a prefix (default: `LaunchTemplateData`)."""

template_xml: Seam[Callable[[Record], str]] = Seam("_lt_data_xml", _ec2)
"""The XML of a launch template's data in DescribeLaunchTemplateVersions."""
