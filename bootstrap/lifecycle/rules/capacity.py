"""Rules on whether AWS will start the instances: the zone offers them, and this user may start them.

All GPU nodes are in one zone, so a zone with only some of their types is useless. A cluster that its zone does not have
is refused by EMR itself, within a minute.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.lifecycle.rules import PreflightContext
from infra import catalog, sizing
from infra.topology import instance_types

_ROOT_DEVICE = "/dev/xvda"
"""The device that infra/training.py makes larger, and encrypts."""


def type_not_offered(context: PreflightContext) -> Iterator[str]:
    """No zone that GPU nodes can use offers all of their types; and a zone that offers all of the topology's."""
    topology = context.topology
    zones = [topology.zone] if topology.zone else _named_zones(context)[: sizing.zones(topology.region)]
    types = [name for name in instance_types(topology) if not catalog.find(name).retired]
    needed = [name for name in types if any(name in group.types for group in topology.training)]
    if not zones or not needed:
        return
    offers = defaultdict[str, set[str]](set)
    for found in context.account.items(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": types}],
    ):
        offers[found["Location"]].add(found["InstanceType"])
    lacking = {zone: [name for name in needed if name not in offers[zone]] for zone in zones}
    if not all(lacking.values()):
        return
    hint = f"no zone of {topology.region} offers all of them; choose other types or another region"
    if everything := [zone for zone in sorted(offers) if offers[zone].issuperset(types)]:
        hint = f"write `zone: {everything[0]}`, which offers all"
    lacks = "; ".join(f"{zone} does not offer {' and '.join(names)}" for zone, names in lacking.items())
    yield f"zone: {lacks}; {hint}."


def may_not_start(context: PreflightContext) -> Iterator[str]:
    """Each type of a node group of which EC2 reports for a dry run that this user cannot start its nodes."""
    for group, kind in ((each, kind) for each in context.topology.training for kind in each.types):
        if catalog.find(kind).retired:
            continue
        image = group.image or f"resolve:ssm:{catalog.image_of(kind).parameter}"
        request: dict[str, Any] = {
            "DryRun": True,
            "ImageId": image,
            "InstanceType": kind,
            "MinCount": 1,
            "MaxCount": 1,
        }
        if group.market != "on-demand":
            request["InstanceMarketOptions"] = {"MarketType": group.market}
        if group.reservation:
            target = {"CapacityReservationTarget": {"CapacityReservationId": group.reservation}}
            request["CapacityReservationSpecification"] = target
        if context.topology.network.subnet:
            request["SubnetId"] = context.topology.network.subnet
        try:
            context.account.client("ec2").run_instances(**request)
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
            if code == "DryRunOperation":
                continue
            denied = _DENIED.search(message)
            if code == "UnauthorizedOperation" and (denied is None or denied[1] == "ec2:RunInstances"):
                yield (
                    f"{kind} ({group.name}): your credentials may not start it (ec2:RunInstances); "
                    "ask your account's administrator for that permission."
                )
            elif code.startswith(("InvalidAMI", "InvalidParameterValue", "Unsupported")):
                yield f"{kind} ({group.name}): EC2 would not start it from {image}: {message}"
            else:
                raise


def image_unusable(context: PreflightContext) -> Iterator[str]:
    """Each image of a node group from which nodes would boot, but without the volume that the topology promises."""
    for group in context.topology.training:
        if group.image is None:
            continue
        try:
            found = context.account.client("ec2").describe_images(ImageIds=[group.image])["Images"]
        except ClientError as error:
            if not error.response["Error"]["Code"].startswith("InvalidAMIID"):
                raise
            continue  # `may_not_start` reports an image that does not exist
        for image in found:
            device = image.get("RootDeviceName", _ROOT_DEVICE)
            volumes = [
                each["Ebs"].get("VolumeSize", 0) for each in image.get("BlockDeviceMappings", ()) if "Ebs" in each
            ]
            where = f"training, {group.name}, image: {group.image}"
            if device != _ROOT_DEVICE:
                yield f"{where} has the root device {device}, not {_ROOT_DEVICE} as Amazon Linux has; write another."
            elif (gib := max(volumes, default=0)) > sizing.GPU_ROOT_GIB:
                yield f"{where} needs {gib} GiB, and the nodes have {sizing.GPU_ROOT_GIB}; write another."


def reservation_unusable(context: PreflightContext) -> Iterator[str]:
    """Each reservation that does not exist, or holds other instances than its group needs."""
    for group in context.topology.training:
        if group.reservation is None:
            continue
        where = f"training, {group.name}, reservation: {group.reservation}"
        try:
            (found,) = context.account.client("ec2").describe_capacity_reservations(
                CapacityReservationIds=[group.reservation]
            )["CapacityReservations"] or [None]
        except ClientError as error:
            if not error.response["Error"]["Code"].startswith("InvalidCapacityReservationId"):
                raise
            found = None
        if found is None:
            yield f"{where} is not in {context.topology.region}; write another."
            continue
        block = found.get("ReservationType") == "capacity-block"
        for field, written, held in (
            ("instance_type", group.instance_type, found["InstanceType"]),
            ("zone", context.topology.zone, found["AvailabilityZone"]),
            ("market", group.market, "capacity-block" if block else "on-demand"),
            ("count", group.count, min(group.count, found["TotalInstanceCount"])),
            ("state", "active", "active" if found["State"] == "scheduled" else found["State"]),
        ):
            if held != written:
                yield f"{where} has the {field} {held}, and the topology needs {written}."


_DENIED = re.compile(r"not authorized to perform: ([a-z0-9-]+:\w+)")
"""The action that is denied: EC2 refuses a request also because of what it needs of another service."""


def _named_zones(context: PreflightContext) -> list[str]:
    """The zones that CloudFormation's `Fn::GetAZs` names, in its order.

    They are those with a default subnet; in an account that has none at all, every zone of the region.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference-getavailabilityzones.html
    """
    filters = [{"Name": "default-for-az", "Values": ["true"]}]
    subnets = context.account.items("ec2", "describe_subnets", "Subnets", Filters=filters)
    names = {str(subnet["AvailabilityZone"]) for subnet in subnets}
    if not names:
        zones = context.account.items("ec2", "describe_availability_zones", "AvailabilityZones")
        names = {
            str(zone["ZoneName"])
            for zone in zones
            if zone.get("ZoneType", "availability-zone") == "availability-zone" and zone.get("State") == "available"
        }
    return sorted(names)
