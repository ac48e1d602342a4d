"""VPCs and what is in them.

AWS's services, such as EMR and GuardDuty, also put resources into the VPC; it can be deleted only after these.
"""

from collections.abc import Mapping

from bootstrap.aws.account import ResourceRecord
from bootstrap.aws.ownership import Ownership, listed_tags, or_in_own_vpc
from bootstrap.removal import deletion
from bootstrap.removal.deletion import delete_call
from bootstrap.removal.kinds.kind import ResourceKind, always, ec2_kind


def _group_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    """The group named default is deleted with its VPC, and never before."""
    return record["GroupName"] != "default" and or_in_own_vpc(listed_tags)(ownership, record)


def _interface_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    """An interface in use is deleted with what uses it."""
    return record.get("Status") == "available" and or_in_own_vpc(listed_tags)(ownership, record)


NETWORKS: Mapping[str, ResourceKind] = {
    "nat gateway": ec2_kind(
        "NatGateways", "NatGatewayId", "NatGateway", "natgateway", owned=or_in_own_vpc(listed_tags), billed=always
    ),
    "vpc endpoint": ec2_kind(
        "VpcEndpoints",
        "VpcEndpointId",
        "VPCEndpoint",
        "vpc-endpoint",
        owned=or_in_own_vpc(listed_tags),
        delete=delete_call("ec2", "delete_vpc_endpoints", VpcEndpointIds="[id]"),
        billed=lambda record: record.get("VpcEndpointType") != "Gateway",
    ),
    "elastic ip": ec2_kind("Addresses", "AllocationId", "EIP", "elastic-ip", delete=deletion.elastic_ip, billed=always),
    "flow log": ec2_kind(
        "FlowLogs",
        "FlowLogId",
        "FlowLog",
        "vpc-flow-log",
        delete=delete_call("ec2", "delete_flow_logs", FlowLogIds="[id]"),
        billed=always,
    ),
    "network interface": ec2_kind(
        "NetworkInterfaces", "NetworkInterfaceId", "NetworkInterface", "network-interface", owned=_interface_is_owned
    ),
    "security group": ec2_kind(
        "SecurityGroups",
        "GroupId",
        "SecurityGroup",
        "security-group",
        owned=_group_is_owned,
        delete=deletion.security_group,
    ),
    "network acl": ec2_kind("NetworkAcls", "NetworkAclId", "NetworkAcl", "network-acl"),
    "internet gateway": ec2_kind(
        "InternetGateways", "InternetGatewayId", "InternetGateway", "internet-gateway", delete=deletion.internet_gateway
    ),
    "subnet": ec2_kind(
        "Subnets", "SubnetId", "Subnet", "subnet", owned=or_in_own_vpc(listed_tags), delete=deletion.subnet
    ),
    "route table": ec2_kind("RouteTables", "RouteTableId", "RouteTable", "route-table", delete=deletion.route_table),
    "vpc": ec2_kind("Vpcs", "VpcId", "VPC", "vpc"),
}
