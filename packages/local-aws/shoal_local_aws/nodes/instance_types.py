"""Describes and offers the instance types of EC2 that are used for this kind of work.

Sizes are from EC2's pages on its instance types. Retired types are listed, too. A type that is not listed does not
exist, so that a typing error is found.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import NoCapacity, NotOffered
from shoal_local_aws.seams import ec2, requests
from shoal_local_aws.service import Record, parameter

_ZONES = "abc"  # ministack has these zones in every region
_MIB = 1024
_VCPUS = {"medium": 1, "large": 2, "xlarge": 4, "metal": 96, **{f"{size}xlarge": 4 * size for size in range(2, 49)}}
_INTEL = dict.fromkeys(("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge"), 0)
_GRAVITON = dict.fromkeys(("medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge"), 0)
_G = {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 4, "16xlarge": 1, "24xlarge": 4, "48xlarge": 8}


@dataclass(frozen=True, kw_only=True)
class EmulatedInstanceType:
    """A type: its vCPUs, its memory (GiB), and the name, number and memory (GiB each) of its GPUs."""

    name: str
    vcpus: int
    memory: int
    architecture: str = "x86_64"
    gpu: str = ""
    gpus: int = 0
    gpu_memory: int = 0


def _family(family: str, sizes: Mapping[str, int], memory: int, **shared: Any) -> Iterator[EmulatedInstanceType]:
    """The types of a family; `sizes`: how many GPUs each has; `memory`: GiB a vCPU; `shared`: other fields of all."""
    for size, gpus in sizes.items():
        vcpus = _VCPUS[size]
        yield EmulatedInstanceType(name=f"{family}.{size}", vcpus=vcpus, memory=vcpus * memory, gpus=gpus, **shared)


def _largest(name: str, gpu: str, gpu_memory: int) -> EmulatedInstanceType:
    return EmulatedInstanceType(name=name, vcpus=192, memory=2048, gpu=gpu, gpus=8, gpu_memory=gpu_memory)


TYPES: Mapping[str, EmulatedInstanceType] = {
    kind.name: kind
    for kind in (
        *_family("m4", dict.fromkeys(("large", "xlarge", "2xlarge", "4xlarge", "10xlarge", "16xlarge"), 0), 4),
        *_family("m5", _INTEL, 4),
        *_family("m6i", {**_INTEL, "32xlarge": 0}, 4),
        *_family("m7i", {**_INTEL, "48xlarge": 0}, 4),
        *_family("r5", _INTEL, 8),
        *_family("m6g", _GRAVITON, 4, architecture="arm64"),
        *_family("m7g", _GRAVITON, 4, architecture="arm64"),
        *_family("m8g", {**_GRAVITON, "24xlarge": 0, "48xlarge": 0}, 4, architecture="arm64"),
        *_family("c6g", _GRAVITON, 2, architecture="arm64"),
        *_family("c7g", _GRAVITON, 2, architecture="arm64"),
        *_family("r6g", _GRAVITON, 8, architecture="arm64"),
        *_family("r7g", _GRAVITON, 8, architecture="arm64"),
        *_family("g4dn", {**_G, "metal": 8}, 4, gpu="T4", gpu_memory=16),
        *_family("g5", _G, 4, gpu="A10G", gpu_memory=24),
        *_family("g6", _G, 4, gpu="L4", gpu_memory=24),
        *_family("g6e", _G, 8, gpu="L40S", gpu_memory=48),
        *_family("p4d", {"24xlarge": 8}, 12, gpu="A100", gpu_memory=40),
        *_family("p4de", {"24xlarge": 8}, 12, gpu="A100", gpu_memory=80),
        *_family("p5", {"4xlarge": 1}, 16, gpu="H100", gpu_memory=80),
        _largest("p5.48xlarge", "H100", 80),
        _largest("p5e.48xlarge", "H200", 141),
        _largest("p5en.48xlarge", "H200", 141),
        _largest("p6-b200.48xlarge", "B200", 179),
    )
    if kind.name not in ("g4dn.24xlarge", "g4dn.48xlarge")
}


def zones() -> list[str]:
    """The zones of the region of the current request."""
    return [f"{requests.region()}{letter}" for letter in _ZONES]


def install(faults: Faults) -> None:
    """Replace ministack's operations on instance types."""
    ec2.operations.put(
        DescribeInstanceTypes=_describe,
        DescribeInstanceTypeOfferings=partial(_offerings, faults=faults),
        GetSpotPlacementScores=partial(_spot_scores, faults=faults),
    )


def _describe(parameters: Record) -> Any:
    asked = ec2.list_parameter(parameters, "InstanceType")
    unknown = [name for name in asked if name not in TYPES]
    if unknown:
        message = f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
        return ec2.error("InvalidInstanceType", message, 400)
    filters = ec2.filters(parameters)
    if set(filters) - {"instance-type"}:
        return _no_filter(filters, "instance-type")
    patterns = filters.get("instance-type", ["*"])
    found = [TYPES[name] for name in asked or TYPES if _any_matches(name, patterns)]
    items = "".join(_to_xml(kind) for kind in found)
    return ec2.answer(200, "DescribeInstanceTypesResponse", f"<instanceTypeSet>{items}</instanceTypeSet>")


def _to_xml(kind: EmulatedInstanceType) -> str:
    gpu = (
        f"<gpuInfo><gpus><item><name>{kind.gpu}</name><manufacturer>NVIDIA</manufacturer><count>{kind.gpus}</count>"
        f"<memoryInfo><sizeInMiB>{kind.gpu_memory * _MIB}</sizeInMiB></memoryInfo></item></gpus>"
        f"<totalGpuMemoryInMiB>{kind.gpus * kind.gpu_memory * _MIB}</totalGpuMemoryInMiB></gpuInfo>"
    )
    return (
        f"<item><instanceType>{kind.name}</instanceType><currentGeneration>true</currentGeneration>"
        "<supportedUsageClasses><item>on-demand</item><item>spot</item></supportedUsageClasses>"
        f"<processorInfo><supportedArchitectures><item>{kind.architecture}</item></supportedArchitectures></processorInfo>"
        f"<vCpuInfo><defaultVCpus>{kind.vcpus}</defaultVCpus></vCpuInfo>"
        f"<memoryInfo><sizeInMiB>{kind.memory * _MIB}</sizeInMiB></memoryInfo>{gpu if kind.gpus else ''}</item>"
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


def _spot_scores(parameters: Record, faults: Faults) -> Any:
    """Score zones from 1 to 10, by the share of the types that no fault takes from their spot market.

    For fewer than three types scores are low ("Spot placement score", EC2 user guide, read 2026-11-29).
    """
    region, types = requests.region(), set(ec2.list_parameter(parameters, "InstanceType"))
    asked = ec2.list_parameter(parameters, "RegionName"), parameter(parameters, "SingleAvailabilityZone")
    if not types or asked != ([region], "true"):
        return ec2.error("InvalidParameterValue", "The embedded AWS only scores types in the zones of a region.", 400)
    items = ""
    for zone in zones():
        full = sum(bool(faults.find(NoCapacity, instance_type=each, zone=zone, market="spot")) for each in types)
        score = 10 - 9 * full // len(types) if len(types) >= 3 else 1
        place = f"<region>{region}</region><availabilityZoneId>{ec2.zone_id(zone)}</availabilityZoneId>"
        items += f"<item>{place}<score>{score}</score></item>"
    body = f"<spotPlacementScoreSet>{items}</spotPlacementScoreSet>"
    return ec2.answer(200, "GetSpotPlacementScoresResponse", body)


def _any_matches(value: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)


def _no_filter(filters: Record, *known: str) -> Any:
    unknown = min(set(filters) - set(known))
    return ec2.error("InvalidParameterValue", f"The embedded AWS does not support filter {unknown!r}.", 400)
