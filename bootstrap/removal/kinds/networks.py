"""Networks and what lies in them.

Easy to get wrong: others put things into a VPC of ours, EMR and GuardDuty among them, and it does not go before those.
"""

from collections.abc import Mapping

from bootstrap.aws.account import Record
from bootstrap.aws.ownership import Ownership, placed, tagged
from bootstrap.removal import deletion
from bootstrap.removal.deletion import by
from bootstrap.removal.kinds.kind import ResourceKind, always, lists


def _group_is_owned(claim: Ownership, record: Record) -> bool:
    """Every VPC has a group named default, which goes with it and never before."""
    return record["GroupName"] != "default" and placed(tagged)(claim, record)


def _interface_is_owned(claim: Ownership, record: Record) -> bool:
    """One in use goes with its user."""
    return record.get("Status") == "available" and placed(tagged)(claim, record)


def _is_interface(record: Record) -> bool:
    return record.get("VpcEndpointType") != "Gateway"


NETWORKS: Mapping[str, ResourceKind] = {
    "nat gateway": ResourceKind(
        listing=lists("ec2", "describe_nat_gateways", "NatGateways"),
        identifier="NatGatewayId",
        owned=placed(tagged),
        delete=by("ec2", "delete_nat_gateway", NatGatewayId="id"),
        billed=always,
        arn="ec2:natgateway/(.+)",
        cloudformation="AWS::EC2::NatGateway",
    ),
    "vpc endpoint": ResourceKind(
        listing=lists("ec2", "describe_vpc_endpoints", "VpcEndpoints"),
        identifier="VpcEndpointId",
        owned=placed(tagged),
        delete=by("ec2", "delete_vpc_endpoints", VpcEndpointIds="[id]"),
        billed=_is_interface,
        arn="ec2:vpc-endpoint/(.+)",
        cloudformation="AWS::EC2::VPCEndpoint",
    ),
    "elastic ip": ResourceKind(
        listing=lists("ec2", "describe_addresses", "Addresses"),
        identifier="AllocationId",
        owned=tagged,
        delete=deletion.elastic_ip,
        billed=always,
        arn="ec2:elastic-ip/(.+)",
        cloudformation="AWS::EC2::EIP",
    ),
    "flow log": ResourceKind(
        listing=lists("ec2", "describe_flow_logs", "FlowLogs"),
        identifier="FlowLogId",
        owned=tagged,
        delete=by("ec2", "delete_flow_logs", FlowLogIds="[id]"),
        billed=always,
        arn="ec2:vpc-flow-log/(.+)",
        cloudformation="AWS::EC2::FlowLog",
    ),
    "network interface": ResourceKind(
        listing=lists("ec2", "describe_network_interfaces", "NetworkInterfaces"),
        identifier="NetworkInterfaceId",
        owned=_interface_is_owned,
        delete=by("ec2", "delete_network_interface", NetworkInterfaceId="id"),
        arn="ec2:network-interface/(.+)",
        cloudformation="AWS::EC2::NetworkInterface",
    ),
    "security group": ResourceKind(
        listing=lists("ec2", "describe_security_groups", "SecurityGroups"),
        identifier="GroupId",
        owned=_group_is_owned,
        delete=deletion.security_group,
        arn="ec2:security-group/(.+)",
        cloudformation="AWS::EC2::SecurityGroup",
    ),
    "network acl": ResourceKind(
        listing=lists("ec2", "describe_network_acls", "NetworkAcls"),
        identifier="NetworkAclId",
        owned=tagged,
        delete=by("ec2", "delete_network_acl", NetworkAclId="id"),
        arn="ec2:network-acl/(.+)",
        cloudformation="AWS::EC2::NetworkAcl",
    ),
    "internet gateway": ResourceKind(
        listing=lists("ec2", "describe_internet_gateways", "InternetGateways"),
        identifier="InternetGatewayId",
        owned=tagged,
        delete=deletion.internet_gateway,
        arn="ec2:internet-gateway/(.+)",
        cloudformation="AWS::EC2::InternetGateway",
    ),
    "subnet": ResourceKind(
        listing=lists("ec2", "describe_subnets", "Subnets"),
        identifier="SubnetId",
        owned=placed(tagged),
        delete=by("ec2", "delete_subnet", SubnetId="id"),
        arn="ec2:subnet/(.+)",
        cloudformation="AWS::EC2::Subnet",
    ),
    "route table": ResourceKind(
        listing=lists("ec2", "describe_route_tables", "RouteTables"),
        identifier="RouteTableId",
        owned=tagged,
        delete=deletion.route_table,
        arn="ec2:route-table/(.+)",
        cloudformation="AWS::EC2::RouteTable",
    ),
    "vpc": ResourceKind(
        listing=lists("ec2", "describe_vpcs", "Vpcs"),
        identifier="VpcId",
        owned=tagged,
        delete=by("ec2", "delete_vpc", VpcId="id"),
        arn="ec2:vpc/(.+)",
        cloudformation="AWS::EC2::VPC",
    ),
}
