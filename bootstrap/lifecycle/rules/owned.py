"""Rules on what a topology names of the account besides buckets and a network: key, images, policy, reservations.

They see what AWS would refuse only when roles are made or nodes start, which may be hours after the deployment.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from bootstrap.lifecycle.rules import PreflightContext
from bootstrap.lifecycle.rules.account import lets_in, scaling_role
from infra import sizing
from infra.parts import NodeGroup

_T = TypeVar("_T")
_ROOT_DEVICE = "/dev/xvda"  # which infra/training.py makes larger
_ABSENT = (
    *("InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "NotFoundException", "NoSuchEntity"),
    *("InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed"),
)


def key_unusable(context: PreflightContext) -> Iterator[str]:
    """The key does not exist, or does not encrypt."""
    if (key := context.topology.kms_key) is None:
        return
    answer = _or_none(context.account.client("kms").describe_key, KeyId=key)
    if answer is None:
        yield f"kms_key: there is no {key} for your credentials; write one that `aws kms list-keys` lists."
        return
    state, kind = answer["KeyMetadata"]["KeyState"], answer["KeyMetadata"].get("KeySpec", "SYMMETRIC_DEFAULT")
    if (state, kind) != ("Enabled", "SYMMETRIC_DEFAULT"):
        yield f"kms_key: {key} is {state} and {kind}; write a symmetric key that is enabled."


def key_not_for_scaling(context: PreflightContext) -> Iterator[str]:
    """Neither the key's policy nor a grant lets the role with which EC2 Auto Scaling starts nodes use it."""
    key = context.topology.kms_key
    if key is None or not context.topology.training:
        return
    role = scaling_role(context)
    if _or_none(lets_in, context=context, key=key, role=role) is False:
        yield (
            f"kms_key: {key} does not let {role} use it, without which no GPU node starts with an encrypted volume; "
            "docs/topologies.md has the statement to add to its policy."
        )


def image_unusable(context: PreflightContext) -> Iterator[str]:
    """Each image of the user's that does not exist, or from which nodes would not boot as they should."""
    cluster, groups = context.topology.preprocessing, context.topology.training
    named = [("preprocessing", cluster.image, cluster.architecture)] if cluster else []
    named += [(f"training, {group.name}", group.image, "x86_64") for group in groups]
    for part, image, architecture in named:
        if image is None:
            continue
        answer = _or_none(context.account.client("ec2").describe_images, ImageIds=[image]) or {}
        (found,) = answer.get("Images") or [None]
        if not found or found["State"] != "available":
            yield f"{part}, image: your account may start no {image} in {context.topology.region}; write another."
        elif found["Architecture"] != architecture:
            yield f"{part}, image: {image} is {found['Architecture']}, and the nodes are {architecture}; write another."
        elif part != "preprocessing" and (fault := _of_root(found)):
            yield f"{part}, image: {image} {fault}; write another."


def _of_root(image: dict[str, Any]) -> str:
    device = image.get("RootDeviceName", _ROOT_DEVICE)
    gib = max(
        (each["Ebs"].get("VolumeSize", 0) for each in image.get("BlockDeviceMappings", ()) if "Ebs" in each), default=0
    )
    if device != _ROOT_DEVICE:
        return f"has the root device {device}, not {_ROOT_DEVICE} as Amazon Linux has"
    return f"needs {gib} GiB, and the nodes have {sizing.GPU_ROOT_GIB}" if gib > sizing.GPU_ROOT_GIB else ""


def no_such_boundary(context: PreflightContext) -> Iterator[str]:
    """The policy that is to limit the roles does not exist."""
    policy = context.topology.permissions_boundary
    if policy and _or_none(context.account.client("iam").get_policy, PolicyArn=policy) is None:
        yield f"permissions_boundary: there is no {policy}; write one that `aws iam list-policies` lists."


def reservation_unusable(context: PreflightContext) -> Iterator[str]:
    """Each reservation that does not exist, or has not the capacity that its group needs."""
    ask, topology = context.account.client("ec2").describe_capacity_reservations, context.topology
    for group in topology.training:
        if group.reservation is None:
            continue
        answer = _or_none(ask, CapacityReservationIds=[group.reservation]) or {}
        (found,) = answer.get("CapacityReservations") or [None]
        faults = _faults(group, topology.zone, found) if found else [f"is not in {topology.region}; write another"]
        yield from (f"training, {group.name}, reservation: {group.reservation} {fault}." for fault in faults)


def _faults(group: NodeGroup, zone: str | None, found: dict[str, Any]) -> Iterator[str]:
    kind, there, count = found["InstanceType"], found["AvailabilityZone"], found["TotalInstanceCount"]
    block = found.get("ReservationType") == "capacity-block"
    if kind != group.instance_type:
        yield f"is of {kind}; write `instance_type: {kind}`"
    if there != zone:
        yield f"is in {there}, not in {zone}; write `zone: {there}`"
    if block and group.market != "capacity-block":
        yield "is a Capacity Block; write `market: capacity-block`"
    if not block and group.market == "capacity-block":
        yield "is no Capacity Block; leave `market` out"
    if found["State"] not in ("active", "scheduled"):
        yield f"is {found['State']}, and nothing starts in it; write another"
    if count < group.count:
        yield f"has {count} instances, fewer than {group.count}; write `count: {count}`"


def _or_none(ask: Callable[..., _T], **parameters: Any) -> _T | None:
    """What AWS answers; None where it says that there is no such thing."""
    try:
        return ask(**parameters)
    except ClientError as error:
        if error.response["Error"]["Code"] in _ABSENT:
            return None
        raise
