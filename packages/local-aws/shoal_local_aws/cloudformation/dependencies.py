"""Refuses to delete what something still needs, where ministack does not check it.

CloudFormation's own deletions are refused, too: a template with a missing dependency fails here as on AWS.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from shoal_local_aws.emr.api import clusters
from shoal_local_aws.emr.cluster import TERMINATED
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import LateInterfaces
from shoal_local_aws.nodes.instances import zones_of_placement_group
from shoal_local_aws.seams import cloudformation, ec2, functions, requests, storage
from shoal_local_aws.service import Record, RefusedError, parameter

_GROUPS_OF_CLUSTER = ("EmrManagedMasterSecurityGroup", "EmrManagedSlaveSecurityGroup", "ServiceAccessSecurityGroup")


_faults: list[Faults] = []


def install(faults: Faults) -> None:
    """Check before every deletion."""
    _faults.append(faults)
    for operation, (name, kind, check) in _CHECKS.items():
        ec2.operations.wrap(operation, partial(_unless, name, check))
        if kind:
            handlers = cloudformation.handlers_of(f"AWS::EC2::{kind}")
            handlers["delete"] = _unless_in_stack(handlers["delete"], check)
    functions.delete_rule.wrap(_unless_rule_has_targets)


def _unless_rule_has_targets(delete: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def checked(request: Record) -> Any:
        if functions.has_targets(request):
            return requests.json_error("ValidationException", "Rule can't be deleted since it has targets.")
        return delete(request)

    return checked


def _unless(name: str, check: Callable[[str], None], operation: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def checked(parameters: Record) -> Any:
        try:
            check(parameter(parameters, name))
        except RefusedError as refusal:
            return ec2.error(refusal.code, str(refusal), 400)
        return operation(parameters)

    return checked


def _unless_in_stack(delete: Callable[[str, Record], None], check: Callable[[str], None]) -> Callable[..., None]:
    def checked(identifier: str, properties: Record) -> None:
        try:
            check(identifier)
        except RefusedError as refusal:
            raise ValueError(f"{refusal} (Service: Ec2, Status Code: 400, Error Code: {refusal.code})") from refusal
        delete(identifier, properties)

    return checked


def _instances() -> Iterator[tuple[str, Record]]:
    for identifier, record in ec2.instances.items():
        if record["State"]["Name"] != "terminated":
            yield identifier, record


def _gateways() -> Iterator[tuple[str, Record]]:
    for identifier, record in ec2.nat_gateways.items():
        if record["State"] != "deleted":
            yield identifier, record


def _clusters() -> Iterator[tuple[str, Record]]:
    late = sum(fault.seconds for faults in _faults if (fault := faults.find(LateInterfaces)))
    for cluster in clusters():
        ended = cluster.record["Status"]["Timeline"].get("EndDateTime", time.time())
        if cluster.state not in TERMINATED or time.time() - ended < late:
            yield cluster.record["Id"], cluster.record["Ec2InstanceAttributes"]


def _user_of_security_group(identifier: str) -> str | None:
    """What uses a security group: another group whose rule refers to it, or a resource that has the group."""
    for other, group in ec2.security_groups.items():
        for permission in [*group["IpPermissions"], *group["IpPermissionsEgress"]]:
            pairs = permission.get("UserIdGroupPairs") or []
            if other != identifier and any(pair.get("GroupId") == identifier for pair in pairs):
                return str(other)
    users = [
        *((name, [group["GroupId"] for group in record["SecurityGroups"]]) for name, record in _instances()),
        *((name, record.get("SecurityGroupIds") or []) for name, record in ec2.vpc_endpoints.items()),
        *((name, record.get("SecurityGroups") or []) for name, record in storage.mount_targets.items()),
        *((name, [group["GroupId"] for group in record["Groups"]]) for name, record in ec2.network_interfaces.items()),
        *((name, [attributes.get(role) for role in _GROUPS_OF_CLUSTER]) for name, attributes in _clusters()),
    ]
    return next((name for name, groups in users if identifier in groups), None)


def _check_security_group(identifier: str) -> None:
    user = _user_of_security_group(identifier)
    if user is not None:
        raise RefusedError("DependencyViolation", f"resource {identifier} has a dependent object: {user}")


def _check_subnet(identifier: str) -> None:
    lies_in = [
        *(record["SubnetId"] for _, record in _instances()),
        *(record["SubnetId"] for _, record in _gateways()),
        *(record["SubnetId"] for record in ec2.network_interfaces.values()),
        *(record["SubnetId"] for record in storage.mount_targets.values()),
        *(subnet for record in ec2.vpc_endpoints.values() for subnet in record.get("SubnetIds") or []),
        *(attributes["Ec2SubnetId"] for _, attributes in _clusters()),
    ]
    if identifier in lies_in:
        message = f"The subnet '{identifier}' has dependencies and cannot be deleted."
        raise RefusedError("DependencyViolation", message)


def _check_route_table(identifier: str) -> None:
    if any(each.get("SubnetId") for each in (ec2.route_tables.get(identifier) or {}).get("Associations", [])):
        message = f"The routeTable '{identifier}' has dependencies and cannot be deleted."
        raise RefusedError("DependencyViolation", message)


def _check_network(identifier: str) -> None:
    own_tables = [
        table
        for table in ec2.route_tables.values()
        if table["VpcId"] == identifier and not any(each.get("Main") for each in table["Associations"])
    ]
    endpoints = [endpoint for endpoint in ec2.vpc_endpoints.values() if endpoint["VpcId"] == identifier]
    if own_tables or endpoints:
        raise RefusedError("DependencyViolation", f"The vpc '{identifier}' has dependencies and cannot be deleted.")


def _check_internet_gateway(identifier: str) -> None:
    if (ec2.internet_gateways.get(identifier) or {}).get("Attachments"):
        message = f"The internetGateway '{identifier}' has dependencies and cannot be deleted."
        raise RefusedError("DependencyViolation", message)


def _check_network_with_addresses(identifier: str) -> None:
    identifier = identifier.rpartition("|")[2]  # of an attachment, the id after the gateway's
    if any(record["VpcId"] == identifier and record["AllocationId"] for _, record in _gateways()):
        message = (
            f"Network {identifier} has some mapped public address(es). Please unmap those public address(es) before "
            "detaching the gateway."
        )
        raise RefusedError("DependencyViolation", message)


def _check_address(allocation: str) -> None:
    for identifier, record in _gateways():
        if allocation and record["AllocationId"] == allocation:
            message = f"Address with allocation id {allocation} is in use by {identifier}."
            raise RefusedError("InvalidIPAddress.InUse", message)


def _check_placement_group(name: str) -> None:
    if zones_of_placement_group(name):
        message = f"The placement group '{name}' is in use and may not be deleted."
        raise RefusedError("InvalidPlacementGroup.InUse", message)


_CHECKS: Mapping[str, tuple[str, str, Callable[[str], None]]] = {
    "DeleteSecurityGroup": ("GroupId", "SecurityGroup", _check_security_group),
    "DeleteSubnet": ("SubnetId", "Subnet", _check_subnet),
    "DeleteRouteTable": ("RouteTableId", "RouteTable", _check_route_table),
    "DeleteVpc": ("VpcId", "VPC", _check_network),
    "DeleteInternetGateway": ("InternetGatewayId", "InternetGateway", _check_internet_gateway),
    "DetachInternetGateway": ("VpcId", "VPCGatewayAttachment", _check_network_with_addresses),
    "ReleaseAddress": ("AllocationId", "", _check_address),
    "DeletePlacementGroup": ("GroupName", "", _check_placement_group),
}
"""By operation: the parameter with what it deletes, the type of CloudFormation whose deletion is checked, too, and the
check."""
