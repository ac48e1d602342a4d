"""Rules for the zones of a network, and for an existing network: its subnet, and the access of nodes to AWS services
and DNS.

Never change a user's network. Each message contains the command with which the user can change the network.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError
from shoal_guard.sweep.account import read_tags

from bootstrap.aws import zones
from bootstrap.lifecycle.rules import PreflightContext
from common.errors import ShoalError
from infra.sizing import INTERFACE_ENDPOINTS

_EMR_TAG = "for-use-with-amazon-emr-managed-policies"


def type_not_in_zone(context: PreflightContext) -> Iterator[str]:
    """Yield a message if no zone, or not the zone of the topology or deployment, offers all instance types."""
    try:
        zones.choose(context.account, context.topology, context.deployment)
    except ShoalError as error:
        yield str(error)


def subnet_unusable(context: PreflightContext) -> Iterator[str]:
    """Yield a message if the subnet does not exist, is in a VPC or zone that differs from the topology, or lacks EMR's
    tag."""
    topology, network = context.topology, context.topology.network
    if network.subnet is None:
        return
    try:
        (subnet,) = context.account.client("ec2").describe_subnets(SubnetIds=[network.subnet])["Subnets"]
    except ClientError as error:
        if not error.response["Error"]["Code"].startswith("InvalidSubnetID"):
            raise
        yield (
            f"network, subnet: {network.subnet} does not exist in {topology.region} for your credentials; "
            f"write a subnet that `aws ec2 describe-subnets --region {topology.region}` lists."
        )
        return
    if (vpc := subnet["VpcId"]) != network.vpc:
        yield f"network, vpc: {network.subnet} is in {vpc}, not in {network.vpc}; write {vpc}."
    if (zone := subnet["AvailabilityZone"]) != topology.zone:
        yield f"zone: {network.subnet} is in {zone}, not in {topology.zone}; write {zone}."
    if topology.preprocessing and read_tags(subnet.get("Tags")).get(_EMR_TAG) != "true":
        yield (
            f"network, subnet: {network.subnet} lacks a tag that EMR needs; add it: aws ec2 "
            f"create-tags --region {topology.region} --resources {network.subnet} "
            f"--tags Key={_EMR_TAG},Value=true"
        )


def no_way_out(context: PreflightContext) -> Iterator[str]:
    """Yield a message if nodes in the subnet cannot reach S3 or, with `shell`, Systems Manager."""
    network, region = context.topology.network, context.topology.region
    if network.subnet is None:
        return
    table = _route_table(context)
    if table is None or _leads_out(table):
        return
    filters = [{"Name": "vpc-id", "Values": [str(network.vpc)]}]
    endpoints = list(context.account.items("ec2", "describe_vpc_endpoints", "VpcEndpoints", Filters=filters))
    endpoints = [each for each in endpoints if str(each["State"]).lower() == "available"]
    services = {endpoint["ServiceName"].removeprefix(f"com.amazonaws.{region}.") for endpoint in endpoints}
    gateways = {each for endpoint in endpoints for each in endpoint.get("RouteTableIds", ())}
    make = f"aws ec2 create-vpc-endpoint --region {region} --vpc-id {network.vpc}"
    if table["RouteTableId"] not in gateways:
        yield (
            f"network, subnet: nodes in {network.subnet} do not reach S3: the subnet has no route out and no S3 "
            f"gateway endpoint; create an endpoint: {make} --service-name com.amazonaws.{region}.s3 "
            f"--route-table-ids {table['RouteTableId']}"
        )
    for service in INTERFACE_ENDPOINTS if network.shell else ():
        if service not in services:
            yield (
                f"network, vpc: nodes in {network.subnet} do not reach Systems Manager ({service}): the subnet has no "
                f"route out and no interface endpoint; create an endpoint: {make} --vpc-endpoint-type Interface "
                f"--service-name com.amazonaws.{region}.{service} --subnet-ids {network.subnet} "
                "--private-dns-enabled; or remove `shell`"
            )


def no_dns(context: PreflightContext) -> Iterator[str]:
    """Yield a message if the VPC does not resolve DNS names, or if it does not assign DNS names that EMR, EFS or
    interface endpoints need."""
    topology, vpc = context.topology, context.topology.network.vpc
    if vpc is None:
        return
    needed = {"enableDnsSupport": "nodes cannot find AWS services"}
    if topology.preprocessing or topology.share == "efs" or topology.network.shell:
        needed["enableDnsHostnames"] = "EMR, EFS and interface endpoints need DNS names"
    for attribute, why in needed.items():
        answer = context.account.client("ec2").describe_vpc_attribute(VpcId=vpc, Attribute=attribute)
        if not answer[attribute[0].upper() + attribute[1:]]["Value"]:
            option = "support" if attribute == "enableDnsSupport" else "hostnames"
            yield (
                f"network, vpc: {attribute} of {vpc} is off, and {why}; turn it on: aws ec2 modify-vpc-attribute "
                f"--region {topology.region} --vpc-id {vpc} --enable-dns-{option}"
            )


def _route_table(context: PreflightContext) -> Mapping[str, Any] | None:
    """Return the route table of the subnet, or the main route table of the VPC if the subnet uses it."""
    network = context.topology.network
    filters = [{"Name": "vpc-id", "Values": [str(network.vpc)]}]
    found = context.account.items("ec2", "describe_route_tables", "RouteTables", Filters=filters)
    tables: list[Mapping[str, Any]] = list(found)
    for table in tables:
        if any(each.get("SubnetId") == network.subnet for each in table.get("Associations", ())):
            return table
    return next((table for table in tables if any(each.get("Main") for each in table.get("Associations", ()))), None)


def _leads_out(table: Mapping[str, Any]) -> bool:
    """Return whether a route table has a route out of the VPC. Internet gateways do not count, because nodes have no
    public addresses."""
    return any(
        route.get("DestinationCidrBlock") == "0.0.0.0/0"
        and route.get("State", "active") == "active"
        and not str(route.get("GatewayId", "")).startswith("igw-")
        for route in table.get("Routes", ())
    )
