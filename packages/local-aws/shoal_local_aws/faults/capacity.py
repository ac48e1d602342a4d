"""Chooses the market (`spot` or `on-demand`) of an auto scaling group's next instance, and checks its capacity.

If there is no spot capacity, a group does not fall back to on-demand instances.
"""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from shoal_local_aws.faults import zones
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import FreePlan, NoCapacity

ON_DEMAND, SPOT = "on-demand", "spot"
FAILED = "Launching EC2 instance failed."
# Rule: The Free plan has these types. Source: RhinoSecurityLabs/cloudgoat#378.
_FREE_TYPES = ("t3.micro", "t3.small", "t4g.micro", "t4g.small", "c7i-flex.large", "m7i-flex.large")


class NoCapacityError(Exception):
    """No instance is available now. The message is AWS's own."""


def market(policy: Mapping[str, Any], data: Mapping[str, Any], *, desired: int, on_demand: int) -> str:
    """Return the market of a group's next instance, `spot` or `on-demand`. `data` is the data of its launch template,
    and `on_demand` is its number of on-demand instances."""
    if not policy:
        return SPOT if (data.get("InstanceMarketOptions") or {}).get("MarketType") == SPOT else ON_DEMAND
    distribution = policy.get("InstancesDistribution") or {}
    base = int(distribution.get("OnDemandBaseCapacity") or 0)
    share = int(distribution.get("OnDemandPercentageAboveBaseCapacity", 100))
    # Belief: The share of on-demand instances is rounded up. No check: it takes a group with instances.
    on_demand_count = min(desired, base + math.ceil(max(0, desired - base) * share / 100))
    return ON_DEMAND if on_demand < on_demand_count else SPOT


def instance_types(
    policy: Mapping[str, Any], data: Mapping[str, Any], *, market: str, running: Sequence[str]
) -> list[str]:
    """Return the instance types that a group may start, the preferred type first.

    On-demand types are in the order of the policy. AWS takes spot instances from the pools with the most spare
    capacity. Here, the types with the fewest `running` instances in the group come first.
    """
    overrides = (policy.get("LaunchTemplate") or {}).get("Overrides") or []
    chosen = [override["InstanceType"] for override in overrides if "InstanceType" in override]
    # Rule: Only on-demand types have an order. Source: "Allocation strategies for multiple instance types".
    if market == SPOT:
        chosen.sort(key=running.count)
    return chosen or [data.get("InstanceType", "m1.small")]


def require(faults: Faults, *, zone: str, instance_type: str, market: str) -> None:
    """Raise NoCapacityError if the zone does not offer the type, the plan of the account excludes it, or a fault takes
    the capacity away."""
    # Rule: A launch fails if the zone lacks the type. Source: compiler-explorer/infra#601.
    if refusal := zones.refusal(faults, [zone], [instance_type]):
        raise NoCapacityError(f"{refusal} {FAILED}")
    # Rule: The Free plan refuses other types. Source: LinkedInLearning/learning-terraform-3087701#345.
    if instance_type not in _FREE_TYPES and faults.find(FreePlan):
        raise NoCapacityError(f"The specified instance type is not eligible for Free Tier. {FAILED}")
    if not faults.find(NoCapacity, zone=zone, instance_type=instance_type, market=market):
        return
    # Rule: A launch fails without spot capacity. Source: mludvig/aws-ethereum-miner#23.
    if market == SPOT:
        raise NoCapacityError(
            "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request "
            f"configuration. Please adjust your request and try again. {FAILED}"
        )
    # Rule: A launch fails without on-demand capacity. Source: hashicorp/terraform#8857.
    raise NoCapacityError(
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested "
        f"({zone}). Our system will be working on provisioning additional capacity. You can currently get "
        f"{instance_type} capacity by not specifying an Availability Zone in your request or choosing "
        f"{', '.join(other for other in zones.offering(instance_type, faults) if other != zone)}. {FAILED}"
    )


def require_together(group: Mapping[str, Any], *, zone: str, occupied: AbstractSet[str]) -> None:
    """Raise NoCapacityError if a new instance in `zone` would spread a cluster placement group over two zones.
    `occupied` are the zones in which the group's instances run."""
    others = occupied - {zone}
    # Rule: A cluster placement group is in one zone. Source: botocore ec2 CreatePlacementGroup.
    if group["Strategy"] == "cluster" and others:
        name, other = group["GroupName"], min(others)
        raise NoCapacityError(
            f"Instances in the '{name}' Placement Group must be launched in the {other} Availability Zone. "
            f"Specify the {other} Availability Zone and try again. {FAILED}"
        )
