"""Chooses the market of a group's next instance, and checks that AWS has capacity for it.

A group whose spot instances are not available stays without them: it does not fall back to on-demand instances.
"""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import FreePlan, NoCapacity, NotOffered

ON_DEMAND, SPOT = "on-demand", "spot"
_FAILED = "Launching EC2 instance failed."
_FREE_TYPES = ("t3.micro", "t3.small", "t4g.micro", "t4g.small", "c7i-flex.large", "m7i-flex.large")


class NoCapacityError(Exception):
    """No instance is available now; the text is AWS's own."""


def market(policy: Mapping[str, Any], data: Mapping[str, Any], *, desired: int, on_demand: int) -> str:
    """The market of a group's next instance.

    Args:
        policy: the group's MixedInstancesPolicy, empty when it has none.
        data: its launch template's.
        desired: its desired capacity.
        on_demand: how many of its instances are on demand.
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
    """The types that a group may start, the preferred one first.

    On demand the list's order is the priority. Spot instances come from the pools with the most spare capacity, which
    has no order, and which each instance lessens: here from the type of which the fewest are among the group's
    `running` ones ("Allocation strategies for multiple instance types", EC2 Auto Scaling's guide, read 2026-11-29).
    """
    overrides = (policy.get("LaunchTemplate") or {}).get("Overrides") or []
    chosen = [override["InstanceType"] for override in overrides if "InstanceType" in override]
    if market == SPOT:
        chosen.sort(key=running.count)
    return chosen or [data.get("InstanceType", "m1.small")]


def require(faults: Faults, *, zone: str, zones: Sequence[str], instance_type: str, market: str) -> None:
    """Refuse an instance that is not available.

    Args:
        zones: the region's.

    Raises:
        NoCapacityError: the type is not offered in the zone, the account's plan does not have it, or the zone has none
            left.
    """
    if faults.find(NotOffered, zone=zone, instance_type=instance_type):
        raise NoCapacityError(
            f"Your requested instance type ({instance_type}) is not supported in your requested Availability Zone "
            f"({zone}). Please retry your request by not specifying an Availability Zone or choosing "
            f"{_others(zone, zones)}. {_FAILED}"
        )
    if instance_type not in _FREE_TYPES and faults.find(FreePlan):
        raise NoCapacityError(f"The specified instance type is not eligible for Free Tier. {_FAILED}")
    if not faults.find(NoCapacity, zone=zone, instance_type=instance_type, market=market):
        return
    if market == SPOT:
        raise NoCapacityError(
            "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request "
            f"configuration. Please adjust your request and try again. {_FAILED}"
        )
    raise NoCapacityError(
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested "
        f"({zone}). Our system will be working on provisioning additional capacity. You can currently get "
        f"{instance_type} capacity by not specifying an Availability Zone in your request or choosing "
        f"{_others(zone, zones)}. {_FAILED}"
    )


def require_together(group: Mapping[str, Any], *, zone: str, occupied: AbstractSet[str]) -> None:
    """Refuse an instance that would put a cluster placement group into two zones.

    Args:
        group: the placement group.
        occupied: the zones in which its instances run.

    Raises NoCapacityError where the group's strategy is `cluster`, and instances run in another zone.
    """
    others = occupied - {zone}
    if group["Strategy"] == "cluster" and others:
        name, other = group["GroupName"], min(others)
        raise NoCapacityError(
            f"Instances in the '{name}' Placement Group must be launched in the {other} Availability Zone. "
            f"Specify the {other} Availability Zone and try again. {_FAILED}"
        )


def _others(zone: str, zones: Sequence[str]) -> str:
    return ", ".join(other for other in zones if other != zone)
