"""Emulates the availability zones of the account, and the instance types that each zone offers.

The environment variable FIRST_ZONE contains the id of the first zone, such as that of us-east-1a.
"""

import os
import string
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import NotOffered
from shoal_local_aws.seams import ec2, requests
from shoal_local_aws.service import Answer, Record, RefusedError, answering, parameter

FIRST_ZONE = "SHOAL_LOCAL_AWS_FIRST_ZONE"
# Rule: A name means different zones in different accounts, and an id the same zone. Source: "AZ IDs".
_NUMBERS = {"us-east-1": (6, 1, 2, 4, 3, 5)}
"""Numbers in the ids of the zones a, b, c and so on. All other regions have the zones 1, 2 and 3."""
# Rule: use1-az3 offers only old families. Source: wolfman.dev/posts/exclude-use1-az3/.
# Belief: use1-az3 offers G3, P2 and P3. No check: AWS no longer offers them in any zone.
_OF_OLD_ZONE = "c3 c4 d2 f2 g3 g3s i2 i3 m3 m4 p2 p3 p5 r3 r4 t2 x1"
"""Families that use1-az3 offers, by DescribeInstanceTypeOfferings in moto 5.2.1."""
_LACKING = {
    "use1-az1": "c8a g7e m8a p4de p5en p6-b200 p6-b300 r8a",
    "use1-az2": "p3dn p4de p6-b200",
    "use1-az4": "g7e p3dn p5en p6-b200 p6-b300",
    "use1-az5": "g4ad g5g g6e g6f g7 g7e gr6 gr6f m8a p3dn p4d p4de p5en p6-b200 p6-b300 r8a",
}
"""GPU and EMR families that a zone lacks, by DescribeInstanceTypeOfferings in moto 5.2.1 (G7, P6-B300: 5.2.5)."""


def ids() -> dict[str, str]:
    """Return the ids of the zones in the region of the current request, by name."""
    region = requests.region()
    prefix = _default_id(f"{region}a").removesuffix("1")
    found = [f"{prefix}{number}" for number in _NUMBERS.get(region, (1, 2, 3))]
    first = os.environ.get(FIRST_ZONE)
    ordered = sorted(found, key=lambda zone: zone != first)
    return {f"{region}{letter}": zone for letter, zone in zip(string.ascii_lowercase, ordered, strict=False)}


def offering(instance_type: str, faults: Faults) -> list[str]:
    """Return the names of the zones that offer an instance type."""
    family = instance_type.partition(".")[0]

    def offers(zone: str) -> bool:
        if zone == "use1-az3":
            return family in _OF_OLD_ZONE.split()
        return family not in _LACKING.get(zone, "").split()

    return [
        name
        for name, zone in ids().items()
        if offers(zone) and not faults.find(NotOffered, zone=name, instance_type=instance_type)
    ]


def refusal(faults: Faults, zones: Collection[str], instance_types: Iterable[str]) -> str:
    """Return EC2's message about the first instance type that a zone does not offer, or an empty string."""
    for instance_type in instance_types:
        offered = offering(instance_type, faults)
        for zone in sorted({*zones} - {*offered}):
            # Rule: A region without the type refuses the configuration. Source: eksctl-io/eksctl#1670.
            if not offered:
                return (
                    "The requested configuration is currently not supported. Please check the documentation for "
                    "supported configurations."
                )
            # Rule: A zone without the type is refused. Source: github.com/privacysandbox/aggregation-service.
            return (
                f"Your requested instance type ({instance_type}) is not supported in your requested Availability Zone "
                f"({zone}). Please retry your request by not specifying an Availability Zone or choosing "
                f"{', '.join(offered)}."
            )
    return ""


def install(faults: Faults) -> None:
    """Make subnets have the zones of the account, and add the operations that describe zones and their types."""
    first = os.environ.get(FIRST_ZONE)
    if first and first not in ids().values():
        raise EmulatorError(f"{FIRST_ZONE} is {first!r}, but the zones are {', '.join(sorted(ids().values()))}.")
    ec2.zone_id.put(lambda name: _known(name, ids(), "availabilityZone"))
    ec2.zone_of_id.put(
        lambda zone: zone and _known(zone, {each: name for name, each in ids().items()}, "availabilityZoneId")
    )
    for subnet in ec2.subnets.values():
        subnet["AvailabilityZoneId"] = ids()[subnet["AvailabilityZone"]]
    ec2.operations.wrap("CreateSubnet", partial(answering, ec2.error))
    ec2.operations.put(
        DescribeAvailabilityZones=lambda _: _describe_zones(),
        DescribeInstanceTypeOfferings=lambda parameters: _describe_offerings(parameters, faults),
    )


def _known(zone: str, zones: Mapping[str, str], field: str) -> str:
    """Return the value of a zone in `zones`. Raises RefusedError if the account does not have the zone."""
    # Rule: A subnet needs a zone of the account. Source: kz8s/tack#67.
    if zone not in zones:
        message = (
            f"Value ({zone}) for parameter {field} is invalid. Subnets can currently only be created in the following "
            f"availability zones: {', '.join(zones)}."
        )
        raise RefusedError("InvalidParameterValue", message)
    return zones[zone]


def _describe_zones() -> Answer:
    region = requests.region()
    zones = "".join(
        f"<item><zoneName>{name}</zoneName><zoneId>{zone}</zoneId><zoneState>available</zoneState>"
        f"<regionName>{region}</regionName><groupName>{region}-zg-1</groupName><zoneType>availability-zone</zoneType>"
        f"<networkBorderGroup>{region}</networkBorderGroup><optInStatus>opt-in-not-required</optInStatus></item>"
        for name, zone in ids().items()
    )
    body = f"<availabilityZoneInfo>{zones}</availabilityZoneInfo>"
    return ec2.answer(200, "DescribeAvailabilityZonesResponse", body)


def _describe_offerings(parameters: Record, faults: Faults) -> Answer:
    """Return the zones that offer the instance types of the filter `instance-type`, which the emulator requires."""
    filters, kind = ec2.filters(parameters), parameter(parameters, "LocationType")
    types = filters.pop("instance-type", [])
    if not types or filters or kind not in ("availability-zone", "availability-zone-id"):
        message = "The embedded AWS describes the zones only of instance types in the filter instance-type."
        return ec2.error("UnsupportedOperation", message)
    items = "".join(
        f"<item><instanceType>{each}</instanceType><locationType>{kind}</locationType>"
        f"<location>{name if kind == 'availability-zone' else ids()[name]}</location></item>"
        for each in types
        for name in offering(each, faults)
    )
    body = f"<instanceTypeOfferingSet>{items}</instanceTypeOfferingSet>"
    return ec2.answer(200, "DescribeInstanceTypeOfferingsResponse", body)


_default_id = ec2.zone_id.now
