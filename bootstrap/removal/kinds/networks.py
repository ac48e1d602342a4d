"""VPCs and what is in them.

AWS's services, such as EMR and GuardDuty, also put resources into the VPC; it can be deleted only after these.
"""

from collections.abc import Mapping

from bootstrap.aws.account import ResourceRecord
from bootstrap.aws.ownership import Ownership, listed_tags, or_in_own_vpc
from bootstrap.removal import deletion
from bootstrap.removal.deletion import delete_call
from bootstrap.removal.kinds.kind import ResourceKind, always, list_call


def _group_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    """The group named default is deleted with its VPC, and never before."""
    return record["GroupName"] != "default" and or_in_own_vpc(listed_tags)(ownership, record)


def _interface_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    """An interface in use is deleted with what uses it."""
    return record.get("Status") == "available" and or_in_own_vpc(listed_tags)(ownership, record)


def _is_interface(record: ResourceRecord) -> bool:
    return record.get("VpcEndpointType") != "Gateway"


NETWORKS: Mapping[str, ResourceKind] = {
    "nat gateway": ResourceKind(
        listing=list_call("ec2", "describe_nat_gateways", "NatGateways"),
        identifier="NatGatewayId",
        owned=or_in_own_vpc(listed_tags),
        delete=delete_call("ec2", "delete_nat_gateway", NatGatewayId="id"),
        billed=always,
        arn="ec2:natgateway/(.+)",
        cloudformation="AWS::EC2::NatGateway",
    ),
    "vpc endpoint": ResourceKind(
        listing=list_call("ec2", "describe_vpc_endpoints", "VpcEndpoints"),
        identifier="VpcEndpointId",
        owned=or_in_own_vpc(listed_tags),
        delete=delete_call("ec2", "delete_vpc_endpoints", VpcEndpointIds="[id]"),
        billed=_is_interface,
        arn="ec2:vpc-endpoint/(.+)",
        cloudformation="AWS::EC2::VPCEndpoint",
    ),
    "elastic ip": ResourceKind(
        listing=list_call("ec2", "describe_addresses", "Addresses"),
        identifier="AllocationId",
        owned=listed_tags,
        delete=deletion.elastic_ip,
        billed=always,
        arn="ec2:elastic-ip/(.+)",
        cloudformation="AWS::EC2::EIP",
    ),
    "flow log": ResourceKind(
        listing=list_call("ec2", "describe_flow_logs", "FlowLogs"),
        identifier="FlowLogId",
        owned=listed_tags,
        delete=delete_call("ec2", "delete_flow_logs", FlowLogIds="[id]"),
        billed=always,
        arn="ec2:vpc-flow-log/(.+)",
        cloudformation="AWS::EC2::FlowLog",
    ),
    "network interface": ResourceKind(
        listing=list_call("ec2", "describe_network_interfaces", "NetworkInterfaces"),
        identifier="NetworkInterfaceId",
        owned=_interface_is_owned,
        delete=delete_call("ec2", "delete_network_interface", NetworkInterfaceId="id"),
        arn="ec2:network-interface/(.+)",
        cloudformation="AWS::EC2::NetworkInterface",
    ),
    "security group": ResourceKind(
        listing=list_call("ec2", "describe_security_groups", "SecurityGroups"),
        identifier="GroupId",
        owned=_group_is_owned,
        delete=deletion.security_group,
        arn="ec2:security-group/(.+)",
        cloudformation="AWS::EC2::SecurityGroup",
    ),
    "network acl": ResourceKind(
        listing=list_call("ec2", "describe_network_acls", "NetworkAcls"),
        identifier="NetworkAclId",
        owned=listed_tags,
        delete=delete_call("ec2", "delete_network_acl", NetworkAclId="id"),
        arn="ec2:network-acl/(.+)",
        cloudformation="AWS::EC2::NetworkAcl",
    ),
    "internet gateway": ResourceKind(
        listing=list_call("ec2", "describe_internet_gateways", "InternetGateways"),
        identifier="InternetGatewayId",
        owned=listed_tags,
        delete=deletion.internet_gateway,
        arn="ec2:internet-gateway/(.+)",
        cloudformation="AWS::EC2::InternetGateway",
    ),
    "subnet": ResourceKind(
        listing=list_call("ec2", "describe_subnets", "Subnets"),
        identifier="SubnetId",
        owned=or_in_own_vpc(listed_tags),
        delete=delete_call("ec2", "delete_subnet", SubnetId="id"),
        arn="ec2:subnet/(.+)",
        cloudformation="AWS::EC2::Subnet",
    ),
    "route table": ResourceKind(
        listing=list_call("ec2", "describe_route_tables", "RouteTables"),
        identifier="RouteTableId",
        owned=listed_tags,
        delete=deletion.route_table,
        arn="ec2:route-table/(.+)",
        cloudformation="AWS::EC2::RouteTable",
    ),
    "vpc": ResourceKind(
        listing=list_call("ec2", "describe_vpcs", "Vpcs"),
        identifier="VpcId",
        owned=listed_tags,
        delete=delete_call("ec2", "delete_vpc", VpcId="id"),
        arn="ec2:vpc/(.+)",
        cloudformation="AWS::EC2::VPC",
    ),
}
