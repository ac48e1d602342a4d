"""Stores the managed scaling policies of EMR clusters, and refuses those that EMR would refuse.

The policies have no effect, because all nodes of a cluster are one machine.
"""

from collections.abc import Callable, Mapping

from embedded.seams import emr
from embedded.service import Record, RefusedError

_UNITS = ("InstanceFleetUnits", "Instances", "VCPU")
_policies: dict[str, Record] = {}


def start_with(cluster: str, request: Record) -> None:
    """Store the policy, if any, of a request that starts a cluster."""
    if "ManagedScalingPolicy" in request:
        _policies[cluster] = request["ManagedScalingPolicy"]


def check(request: Record) -> None:
    """Raise RefusedError for a policy that EMR would refuse."""
    limits = (request.get("ManagedScalingPolicy") or {}).get("ComputeLimits")
    if limits is None:
        return
    low, high = limits["MinimumCapacityUnits"], limits["MaximumCapacityUnits"]
    if limits["UnitType"] not in _UNITS:
        raise RefusedError("ValidationException", f"UnitType {limits['UnitType']} is none of {', '.join(_UNITS)}.")
    if not 0 < low <= high:
        message = f"MinimumCapacityUnits {low} must be positive and not above MaximumCapacityUnits {high}."
        raise RefusedError("ValidationException", message)


def _put(request: Record) -> Record:
    _require(request)
    check(request)
    _policies[request["ClusterId"]] = request["ManagedScalingPolicy"]
    return {}


def _get(request: Record) -> Record:
    _require(request)
    policy = _policies.get(request["ClusterId"])
    return {} if policy is None else {"ManagedScalingPolicy": policy}


def _remove(request: Record) -> Record:
    _require(request)
    _policies.pop(request["ClusterId"], None)
    return {}


def _require(request: Record) -> None:
    if request["ClusterId"] not in emr.clusters:
        raise RefusedError("InvalidRequestException", f"Cluster id '{request['ClusterId']}' is not valid.")


OPERATIONS: Mapping[str, Callable[[Record], Record]] = {
    "PutManagedScalingPolicy": _put,
    "GetManagedScalingPolicy": _get,
    "RemoveManagedScalingPolicy": _remove,
}
