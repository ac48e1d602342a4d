"""Availability zones in which a topology can be deployed.

Zones have ids here. The name of a zone means different zones in different accounts ("AZ IDs", AWS Regions and
Availability Zones). All groups of a deployment run in one zone, and Auto Scaling refuses a group if its zone does not
offer each of its types. So the zone must offer all types of the topology.
"""

from ipaddress import ip_network

from common import names
from common.errors import ShoalError
from infra import sizing, topology
from infra.topology import Topology
from shoal.aws.account import Account


def choose(account: Account, wanted: Topology, deployment: str) -> list[str]:
    """Return the ids of the zones for the subnets of a topology. If the deployment exists, it keeps its zones. The list
    is empty if the topology needs no subnets, or names their zone.

    Raises ShoalError if no zone, the topology's zone or the zone of the existing deployment offers all instance types.
    """
    if not wanted.has_nodes:
        return []
    types, ids = topology.instance_types(wanted), _ids(account)
    offered = _offered(account, types)
    missing = {zone: [name for name in types if (name, zone) not in offered] for zone in ids}
    suitable = {zone: ids[zone] for zone in ids if not missing[zone]}
    existing = {} if wanted.zone else _existing(account, deployment)
    current = wanted.zone or next(iter(existing), None)
    if current and current not in suitable:
        lack = f"{current} does not offer {' and '.join(missing.get(current, types))}"
        if existing:
            raise ShoalError(f"{lack}, and '{deployment}' cannot leave this zone; destroy it, and deploy it again.")
        others = f"write one of {', '.join(sorted(suitable))}" if suitable else "use other instance types"
        raise ShoalError(f"zone: {lack}; {others}.")
    if not suitable:
        raise ShoalError(
            f"no zone of {wanted.region} offers all of {', '.join(types)} to this account; use other instance types or "
            "a different region."
        )
    return [] if wanted.zone else list((existing or suitable).values())[: sizing.zones(wanted.region)]


def _ids(account: Account) -> dict[str, str]:
    """Return the ids of the account's usable zones by their names, sorted by id, without Local Zones."""
    found = account.client("ec2").describe_availability_zones()["AvailabilityZones"]
    zones = [each for each in found if (each["ZoneType"], each["State"]) == ("availability-zone", "available")]
    return {each["ZoneName"]: each["ZoneId"] for each in sorted(zones, key=lambda each: str(each["ZoneId"]))}


def _offered(account: Account, types: list[str]) -> set[tuple[str, str]]:
    """Return the pairs of an instance type and the name of a zone that offers it."""
    place = {"LocationType": "availability-zone", "Filters": [{"Name": "instance-type", "Values": types}]}
    found = account.items("ec2", "describe_instance_type_offerings", "InstanceTypeOfferings", **place)
    return {(each["InstanceType"], each["Location"]) for each in found}


def _existing(account: Account, deployment: str) -> dict[str, str]:
    """Return the ids of the zones of an existing deployment by their names, in the order of its subnets."""
    tags = {names.TAG_DEPLOYMENT: deployment, names.TAG_NODES: "true"}
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    subnets = account.client("ec2").describe_subnets(Filters=filters)["Subnets"]
    ordered = sorted(subnets, key=lambda each: ip_network(each["CidrBlock"]))
    return {each["AvailabilityZone"]: each["AvailabilityZoneId"] for each in ordered}
