"""Chooses the market (`spot` or `on-demand`) of an auto scaling group's next instance, and checks its capacity.

If there is no spot capacity, a group does not fall back to on-demand instances.
"""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import FreePlan, NoCapacity, NotOffered

ON_DEMAND, SPOT = "on-demand", "spot"
FAILED = "Launching EC2 instance failed."
_FREE_TYPES = ("t3.micro", "t3.small", "t4g.micro", "t4g.small", "c7i-flex.large", "m7i-flex.large")


class NoCapacityError(Exception):
    """No instance is available now. The message is AWS's own."""


def market(policy: Mapping[str, Any], data: Mapping[str, Any], *, desired: int, on_demand: int) -> str:
    """Return the market of a group's next instance, `spot` or `on-demand`.

    Args:
        policy: The group's MixedInstancesPolicy, or empty.
        data: Data of the group's launch template.
        desired: Desired capacity of the group.
        on_demand: Number of on-demand instances in the group.
    """
    if not policy:
        return SPOT if (data.get("InstanceMarketOptions") or {}).get("MarketType") == SPOT else ON_DEMAND
    distribution = policy.get("InstancesDistribution") or {}
    base = int(distribution.get("OnDemandBaseCapacity") or 0)
    share = int(distribution.get("OnDemandPercentageAboveBaseCapacity", 100))
    on_demand_count = min(desired, base + math.ceil(max(0, desired - base) * share / 100))
    return ON_DEMAND if on_demand < on_demand_count else SPOT


def instance_types(
    policy: Mapping[str, Any], data: Mapping[str, Any], *, market: str, running: Sequence[str]
) -> list[str]:
    """Return the instance types that a group may start, the preferred type first.

    On-demand types are in the order of the policy. On AWS, spot instances come from the pools with the most spare
    capacity. Here, spot types are sorted by their number of `running` instances in the group, the fewest first, because
    each instance reduces the capacity of its pool. Source: "Allocation strategies for multiple instance types", EC2
    Auto Scaling's guide, read 2026-11-29.
    """
    overrides = (policy.get("LaunchTemplate") or {}).get("Overrides") or []
    chosen = [override["InstanceType"] for override in overrides if "InstanceType" in override]
    if market == SPOT:
        chosen.sort(key=running.count)
    return chosen or [data.get("InstanceType", "m1.small")]


def require(faults: Faults, *, zone: str, zones: Sequence[str], instance_type: str, market: str) -> None:
    """Check that an instance is available.

    Args:
        faults: Injected faults.
        zone: Requested zone.
        zones: All zones of the region.
        instance_type: Requested type.
        market: Requested market.

    Raises:
        NoCapacityError: The zone does not offer the type, the plan of the account excludes it, or a fault takes the
            capacity away.
    """
    if faults.find(NotOffered, zone=zone, instance_type=instance_type):
        raise NoCapacityError(
            f"Your requested instance type ({instance_type}) is not supported in your requested Availability Zone "
            f"({zone}). Please retry your request by not specifying an Availability Zone or choosing "
            f"{_others(zone, zones)}. {FAILED}"
        )
    if instance_type not in _FREE_TYPES and faults.find(FreePlan):
        raise NoCapacityError(f"The specified instance type is not eligible for Free Tier. {FAILED}")
    if not faults.find(NoCapacity, zone=zone, instance_type=instance_type, market=market):
        return
    if market == SPOT:
        raise NoCapacityError(
            "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request "
            f"configuration. Please adjust your request and try again. {FAILED}"
        )
    raise NoCapacityError(
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested "
        f"({zone}). Our system will be working on provisioning additional capacity. You can currently get "
        f"{instance_type} capacity by not specifying an Availability Zone in your request or choosing "
        f"{_others(zone, zones)}. {FAILED}"
    )


def require_together(group: Mapping[str, Any], *, zone: str, occupied: AbstractSet[str]) -> None:
    """Check that an instance would not spread a cluster placement group over two zones.

    Args:
        group: The placement group.
        zone: Zone of the new instance.
        occupied: Zones in which the group's instances run.

    Raises:
        NoCapacityError: The group's strategy is `cluster`, and its instances run in a different zone.
    """
    others = occupied - {zone}
    if group["Strategy"] == "cluster" and others:
        name, other = group["GroupName"], min(others)
        raise NoCapacityError(
            f"Instances in the '{name}' Placement Group must be launched in the {other} Availability Zone. "
            f"Specify the {other} Availability Zone and try again. {FAILED}"
        )


def _others(zone: str, zones: Sequence[str]) -> str:
    return ", ".join(other for other in zones if other != zone)
