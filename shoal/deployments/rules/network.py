"""Rules for the zones of a network, and for the way from an existing network to S3.

Never change a user's network. The message contains the command with which the user can change the network.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from common.errors import ShoalError
from shoal.aws import zones
from shoal.deployments.rules import PreflightContext


def type_not_in_zone(context: PreflightContext) -> Iterator[str]:
    """Yield a message if no zone, or not the zone of the topology or deployment, offers all instance types."""
    try:
        zones.choose(context.account, context.topology, context.deployment)
    except ShoalError as error:
        yield str(error)


def no_way_out(context: PreflightContext) -> Iterator[str]:
    """Yield a message if nodes in an existing subnet cannot reach S3. AWS starts such nodes, but they never report."""
    network, region = context.topology.network, context.topology.region
    if network.subnet is None:
        return
    of_vpc = [{"Name": "vpc-id", "Values": [str(network.vpc)]}]
    tables = list(context.account.items("ec2", "describe_route_tables", "RouteTables", Filters=of_vpc))
    # A subnet without a route table of its own uses the main route table of the VPC.
    table = _associated(tables, "SubnetId", network.subnet) or _associated(tables, "Main", True)
    if table is None or any(map(_leads_out, table.get("Routes", ()))):
        return
    endpoints = context.account.items("ec2", "describe_vpc_endpoints", "VpcEndpoints", Filters=of_vpc)
    service, identifier = f"com.amazonaws.{region}.s3", table["RouteTableId"]
    if not any(each["ServiceName"] == service and identifier in each.get("RouteTableIds", ()) for each in endpoints):
        yield (
            f"network, subnet: nodes in {network.subnet} do not reach S3: the subnet has no route out and no S3 "
            f"gateway endpoint; create an endpoint: aws ec2 create-vpc-endpoint --region {region} --vpc-id "
            f"{network.vpc} --service-name {service} --route-table-ids {identifier}"
        )


def _associated(tables: list[Mapping[str, Any]], key: str, value: object) -> Mapping[str, Any] | None:
    """Return the route table that has an association with this field, or None."""
    return next((table for table in tables if any(each.get(key) == value for each in table["Associations"])), None)


def _leads_out(route: Mapping[str, Any]) -> bool:
    """Return whether a route leads out of the VPC. Internet gateways do not count, because nodes have no public
    addresses."""
    return (
        route.get("DestinationCidrBlock") == "0.0.0.0/0"
        and route.get("State", "active") == "active"
        and not str(route.get("GatewayId", "")).startswith("igw-")
    )
