"""Refuses the deletion of resources that are still in use, also by CloudFormation. ministack does not check this."""

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
from shoal_local_aws.service import Record, parameter

_GROUPS_OF_CLUSTER = ("EmrManagedMasterSecurityGroup", "EmrManagedSlaveSecurityGroup", "ServiceAccessSecurityGroup")


_faults: list[Faults] = []


def install(faults: Faults) -> None:
    """Add the checks to the delete operations and to CloudFormation's deletions."""
    _faults.append(faults)
    for operation, (name, kind, code, refusal) in _CHECKS.items():
        ec2.operations.wrap(operation, partial(_unless, name, code, refusal))
        if kind:
            handlers = cloudformation.handlers_of(f"AWS::EC2::{kind}")
            handlers["delete"] = _unless_in_stack(code, refusal, handlers["delete"])
    functions.delete_rule.wrap(_unless_rule_has_targets)


def _unless_rule_has_targets(delete: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def checked(request: Record) -> Any:
        # Rule: An EventBridge rule with targets stays. Source: getmoto/moto#5056, with a test on AWS.
        if functions.has_targets(request):
            return requests.json_error("ValidationException", "Rule can't be deleted since it has targets.")
        return delete(request)

    return checked


def _unless(
    name: str, code: str, refusal: Callable[[str], str], operation: Callable[[Record], Any]
) -> Callable[[Record], Any]:
    def checked(parameters: Record) -> Any:
        message = refusal(parameter(parameters, name))
        return ec2.error(code, message) if message else operation(parameters)

    return checked


def _unless_in_stack(code: str, refusal: Callable[[str], str], delete: Callable[[str, Record], None]) -> Any:
    def checked(identifier: str, properties: Record) -> None:
        # Rule: CloudFormation reports the refusal of the service. Source: coreos/tectonic-forum#75.
        if message := refusal(identifier):
            raise ValueError(f"{message} (Service: Ec2, Status Code: 400, Error Code: {code})")
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
    """Return the id of another group with a rule that refers to this group, or of a member of this group, or None."""
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


def _dependents(noun: str, used: Callable[[str], object]) -> Callable[[str], str]:
    """Return a check with EC2's usual message, which refuses the deletion of a `noun` if `used(identifier)` is true."""

    def refusal(identifier: str) -> str:
        return f"The {noun} '{identifier}' has dependencies and cannot be deleted." if used(identifier) else ""

    return refusal


def _refusal_of_security_group(identifier: str) -> str:
    user = _user_of_security_group(identifier)
    return "" if user is None else f"resource {identifier} has a dependent object: {user}"


def _holds_something(subnet: str) -> bool:
    return subnet in [
        *(record["SubnetId"] for _, record in _instances()),
        *(record["SubnetId"] for _, record in _gateways()),
        *(record["SubnetId"] for record in ec2.network_interfaces.values()),
        *(record["SubnetId"] for record in storage.mount_targets.values()),
        *(each for record in ec2.vpc_endpoints.values() for each in record.get("SubnetIds") or []),
        *(attributes["Ec2SubnetId"] for _, attributes in _clusters()),
    ]


def _has_subnets(route_table: str) -> bool:
    return any(each.get("SubnetId") for each in (ec2.route_tables.get(route_table) or {}).get("Associations", []))


def _has_own_tables_or_endpoints(network: str) -> bool:
    own_tables = (
        table["VpcId"] == network and not any(each.get("Main") for each in table["Associations"])
        for table in ec2.route_tables.values()
    )
    return any(own_tables) or any(endpoint["VpcId"] == network for endpoint in ec2.vpc_endpoints.values())


def _refusal_with_addresses(identifier: str) -> str:
    network = identifier.rpartition("|")[2]  # an attachment's id is GATEWAY|VPC
    if not any(record["VpcId"] == network and record["AllocationId"] for _, record in _gateways()):
        return ""
    return (
        f"Network {network} has some mapped public address(es). Please unmap those public address(es) before "
        "detaching the gateway."
    )


def _refusal_of_address(allocation: str) -> str:
    users = (name for name, record in _gateways() if allocation and record["AllocationId"] == allocation)
    user = next(users, "")
    return user and f"Address with allocation id {allocation} is in use by {user}."


def _refusal_of_placement_group(name: str) -> str:
    used = zones_of_placement_group(name)
    return f"The placement group '{name}' is in use and may not be deleted." if used else ""


_VIOLATION = "DependencyViolation"
_CHECKS: Mapping[str, tuple[str, str, str, Callable[[str], str]]] = {
    # Rule: A security group in use stays. Source: botocore ec2 DeleteSecurityGroup.
    "DeleteSecurityGroup": ("GroupId", "SecurityGroup", _VIOLATION, _refusal_of_security_group),
    # Rule: A subnet in use stays. Source: botocore ec2 DeleteSubnet; chef-boneyard/chef-provisioning-aws#498.
    "DeleteSubnet": ("SubnetId", "Subnet", _VIOLATION, _dependents("subnet", _holds_something)),
    # Rule: A route table with subnets stays. Source: botocore ec2 DeleteRouteTable.
    "DeleteRouteTable": ("RouteTableId", "RouteTable", _VIOLATION, _dependents("routeTable", _has_subnets)),
    # Rule: A network with resources stays. Source: botocore ec2 DeleteVpc.
    "DeleteVpc": ("VpcId", "VPC", _VIOLATION, _dependents("vpc", _has_own_tables_or_endpoints)),
    # Rule: An attached internet gateway stays. Source: botocore ec2 DeleteInternetGateway.
    "DeleteInternetGateway": (
        *("InternetGatewayId", "InternetGateway", _VIOLATION),
        _dependents("internetGateway", lambda name: (ec2.internet_gateways.get(name) or {}).get("Attachments")),
    ),
    # Rule: A gateway stays attached to mapped addresses. Source: prabhatsharma/kubernetes-the-hard-way-aws#16.
    "DetachInternetGateway": ("VpcId", "VPCGatewayAttachment", _VIOLATION, _refusal_with_addresses),
    # Rule: An associated address stays. Source: botocore ec2 ReleaseAddress.
    "ReleaseAddress": ("AllocationId", "", "InvalidIPAddress.InUse", _refusal_of_address),
    # Rule: A placement group with instances stays. Source: botocore ec2 DeletePlacementGroup.
    "DeletePlacementGroup": ("GroupName", "", "InvalidPlacementGroup.InUse", _refusal_of_placement_group),
}
"""Checks by operation. The values are: the parameter with the resource's id; the CloudFormation type (without its
prefix) for which the check also applies; the error code; and a function that returns the error message, which is empty
if nothing depends on the resource."""
