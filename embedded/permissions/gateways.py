"""The policies of a network's endpoints: they limit what the machines there ask of a service through them."""

from typing import Any

from embedded.permissions.record import Check
from embedded.seams import ec2, emr, identity


def request_of(check: Check) -> Any:
    """What was asked for, as ministack evaluates policies for it."""
    context = {"aws:tagkeys": None, **{name.lower(): value for name, value in check.context.items()}}
    return identity.asked(
        principal_arn=check.principal,
        principal_type="AssumedRole" if check.who.startswith("assumed-role/") else "User",
        principal_account=check.principal.split(":")[4],
        action=check.action,
        resource_arn=check.resource,
        region=check.region,
        secure_transport=True,
        service_context=context,
    )


def refusal(check: Check) -> Any:
    """The refusal of an endpoint that does not let through what a machine asks; None where it does, or there is none.

    The session of a machine is named by its id.
    """
    network, service = _network_of(check.principal.rpartition("/")[2]), check.action.partition(":")[0]
    for endpoint in ec2.vpc_endpoints.values() if network else ():
        policy, name = endpoint.get("PolicyDocument"), str(endpoint["ServiceName"])
        if endpoint["VpcId"] != network or not name.endswith(f".{service}") or not policy:
            continue
        found = identity.evaluate_policy(policy, request_of(check))
        if found.decision != "Allow":
            found.principal_arn = check.principal
            return found
    return None


def _network_of(machine: str) -> str | None:
    if instance := ec2.instances.get(machine):
        return str(instance["VpcId"])
    cluster: dict[str, Any] = emr.clusters.get(machine) or {"Ec2InstanceAttributes": {}}
    subnet = ec2.subnets.get(cluster["Ec2InstanceAttributes"].get("Ec2SubnetId"))
    return str(subnet["VpcId"]) if subnet else None
