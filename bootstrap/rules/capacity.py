"""Rules on whether AWS will start the machines: offered in the zone, and allowed to this user.

Easy to get wrong: all GPU nodes are in one zone. A zone that has some of their types is of no use.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.rules import Question, Rule
from infra import catalog
from infra.topology import instance_types

_ZONES = 3
"""Of how many of the region's zones a network of the deployment's own has subnets."""


class TypeNotOffered(Rule):
    """No zone that the nodes may be in offers all of their types."""

    level = "error"
    about = "Whether the zone offers the instance types"

    def check(self, asked: Question) -> Iterator[str]:
        """What is missing, and a zone of the region that has everything."""
        topology = asked.topology
        types = [name for name in instance_types(topology) if not catalog.find(name).retired]
        offers = _offers(asked, types)
        zones = sorted({zone for found in offers.values() for zone in found})
        usable = [topology.zone] if topology.zone else _first_zones(asked)
        if any(not _missing(types, offers, zone) for zone in usable):
            return
        everything = [zone for zone in zones if not _missing(types, offers, zone)]
        if everything:
            hint = f"write `zone: {everything[0]}`, which offers all"
        else:
            hint = f"no zone of {topology.region} offers all of them; take other types, or another region"
        lacking = "; ".join(f"{zone} does not offer {_and(_missing(types, offers, zone))}" for zone in usable)
        yield f"zone: {lacking}; {hint}."


class FirstZoneLacksType(Rule):
    """Nodes start in the first zone, and move when it has none of a type: minutes, each time."""

    level = "warning"
    about = "Whether the first zone offers the instance types"

    def check(self, asked: Question) -> Iterator[str]:
        """The zone to write instead."""
        if asked.topology.zone:
            return
        types = [name for name in instance_types(asked.topology) if not catalog.find(name).retired]
        offers, zones = _offers(asked, types), _first_zones(asked)
        if not zones or not (missing := _missing(types, offers, zones[0])):
            return
        for zone in zones[1:]:
            if not _missing(types, offers, zone):
                yield f"zone: {zones[0]}, the first, does not offer {_and(missing)}; write `zone: {zone}`, which does."
                return


class MayNotStart(Rule):
    """EC2 says of a rehearsal (a dry run) that this user could not start the nodes."""

    level = "error"
    about = "Whether GPU nodes may be started"

    def check(self, asked: Question) -> Iterator[str]:
        """Each node group that EC2 refuses."""
        for group in asked.topology.training:
            if catalog.find(group.instance_type).retired:
                continue
            image = catalog.image_of(group.instance_type).parameter
            request: dict[str, Any] = {
                "DryRun": True,
                "ImageId": f"resolve:ssm:{image}",
                "InstanceType": group.instance_type,
                "MinCount": 1,
                "MaxCount": 1,
            }
            if group.market == "spot":
                request["InstanceMarketOptions"] = {"MarketType": "spot"}
            if asked.topology.network.subnet:
                request["SubnetId"] = asked.topology.network.subnet
            try:
                asked.account.client("ec2").run_instances(**request)
            except ClientError as error:
                code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
                if code == "DryRunOperation":
                    continue
                if code == "UnauthorizedOperation":
                    yield (
                        f"{group.instance_type} ({group.name}): your credentials may not start it (ec2:RunInstances); "
                        "ask your account's administrator for that permission."
                    )
                elif code.startswith(("InvalidAMI", "InvalidParameterValue", "Unsupported")):
                    yield f"{group.instance_type} ({group.name}): EC2 would not start it from {image}: {message}"
                else:
                    raise


def _offers(asked: Question, types: Sequence[str]) -> dict[str, set[str]]:
    """The zones that offer each type."""
    offers: dict[str, set[str]] = {name: set() for name in types}
    for found in asked.account.items(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": list(types)}],
    ):
        offers.setdefault(found["InstanceType"], set()).add(found["Location"])
    return offers


def _first_zones(asked: Question) -> list[str]:
    zones = asked.account.items("ec2", "describe_availability_zones", "AvailabilityZones")
    names = (zone["ZoneName"] for zone in zones if zone.get("ZoneType", "availability-zone") == "availability-zone")
    return sorted(names)[:_ZONES]


def _missing(types: Sequence[str], offers: dict[str, set[str]], zone: str) -> list[str]:
    return [name for name in types if zone not in offers[name]]


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)
