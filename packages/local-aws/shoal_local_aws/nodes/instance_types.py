"""Offers the instance types of EC2 that are used for this kind of work.

A type that is not listed is not offered; retired types are not listed. RunInstances and groups start instances of any
type, also of one that does not exist.
"""

from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import NotOffered
from shoal_local_aws.seams import ec2, requests
from shoal_local_aws.service import Record, parameter

_ZONES = "abc"  # ministack has these zones in every region
_INTEL = "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge"
_GRAVITON = "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"
_G = "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"
_SIZES = {
    "m4": "large xlarge 2xlarge 4xlarge 10xlarge 16xlarge",
    "m5": _INTEL,
    "m6i": f"{_INTEL} 32xlarge",
    "m7i": f"{_INTEL} 48xlarge",
    "r5": _INTEL,
    **dict.fromkeys(("m6g", "m7g", "c6g", "c7g", "r6g", "r7g"), _GRAVITON),
    "m8g": f"{_GRAVITON} 24xlarge 48xlarge",
    "g4dn": f"{_G} metal",
    **dict.fromkeys(("g5", "g6", "g6e"), f"{_G} 24xlarge 48xlarge"),
    **dict.fromkeys(("p4d", "p4de"), "24xlarge"),
    "p5": "4xlarge 48xlarge",
    **dict.fromkeys(("p5e", "p5en", "p6-b200"), "48xlarge"),
}
TYPES = tuple(f"{family}.{size}" for family, sizes in _SIZES.items() for size in sizes.split())


def zones() -> list[str]:
    """The zones of the region of the current request."""
    return [f"{requests.region()}{letter}" for letter in _ZONES]


def install(faults: Faults) -> None:
    """Replace ministack's operations on instance types."""
    ec2.operations.put(
        DescribeInstanceTypeOfferings=partial(_offerings, faults=faults),
    )


def _offerings(parameters: Record, faults: Faults) -> Any:
    """Offer every type in every zone, except for faults."""
    kind = parameter(parameters, "LocationType") or "region"
    if kind not in ("region", "availability-zone"):
        return ec2.error("InvalidParameterValue", f"The embedded AWS offers nothing by location type {kind}.", 400)
    filters = ec2.filters(parameters)
    if set(filters) - {"instance-type", "location"}:
        return _no_filter(filters, "instance-type", "location")
    patterns, places = filters.get("instance-type", ["*"]), filters.get("location", ["*"])
    found = set()
    for name in TYPES:
        for zone in zones() if _any_matches(name, patterns) else ():
            place = zone if kind == "availability-zone" else requests.region()
            if _any_matches(place, places) and not faults.find(NotOffered, instance_type=name, zone=zone):
                found.add((name, place))
    items = "".join(
        f"<item><instanceType>{name}</instanceType><locationType>{kind}</locationType><location>{place}</location></item>"
        for name, place in sorted(found)
    )
    body = f"<instanceTypeOfferingSet>{items}</instanceTypeOfferingSet>"
    return ec2.answer(200, "DescribeInstanceTypeOfferingsResponse", body)


def _any_matches(value: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)


def _no_filter(filters: Record, *known: str) -> Any:
    unknown = min(set(filters) - set(known))
    return ec2.error("InvalidParameterValue", f"The embedded AWS does not support filter {unknown!r}.", 400)
