"""Functions that delete a resource with its dependents, one for each kind.

A function raises AWS's error if AWS does not allow the deletion yet; `sweep` then calls the function again later. A
response without an error is no proof, because some EC2 calls report in their response that they did not delete a
resource.
"""

import math
from collections.abc import Callable
from contextlib import suppress

from botocore.exceptions import ClientError
from shoal_guard.handlers import cleanup

from common.errors import ShoalError
from shoal.aws.account import Account, ResourceRecord

Delete = Callable[[Account, str, ResourceRecord], None]
"""Function that deletes a resource. Its arguments are the account, the resource's identifier and its record."""


def delete_call(service: str, operation: str, **parameters: str | list[str] | bool) -> Delete:
    """Return a function that deletes a resource with one call of an operation.

    A value in `parameters` is `id` for the resource's identifier, `[id]` for a list with it, or True.
    """

    def delete(account: Account, identifier: str, _record: ResourceRecord) -> None:
        values = {
            name: identifier if value == "id" else [identifier] if value == ["id"] else value
            for name, value in parameters.items()
        }
        answer = getattr(account.client(service), operation)(**values)
        for refused in answer.get("Unsuccessful") or ():
            raise ShoalError(refused["Error"]["Message"])

    return delete


def empty_bucket(account: Account, bucket: str) -> None:
    """Delete every version of every object, and every unfinished upload."""
    try:
        cleanup.empty(account.client("s3"), bucket, lambda: math.inf)
    except cleanup.UnfinishedError as error:
        raise ShoalError(str(error)) from None


def bucket(account: Account, name: str, _record: ResourceRecord) -> None:
    """Empty a bucket and delete it."""
    empty_bucket(account, name)
    account.client("s3").delete_bucket(Bucket=name)


def cluster(account: Account, identifier: str, _record: ResourceRecord) -> None:
    """Terminate an EMR cluster, even if it has termination protection."""
    emr = account.client("emr")
    emr.set_termination_protection(JobFlowIds=[identifier], TerminationProtected=False)
    emr.terminate_job_flows(JobFlowIds=[identifier])


def security_group(account: Account, identifier: str, _record: ResourceRecord) -> None:
    """Delete a security group. First remove its rules that refer to groups, and other groups' rules that refer to it.

    The rules have no effect if no interface uses the group. Raises ShoalError if an interface uses it.
    """
    ec2 = account.client("ec2")
    interfaces = account.items("ec2", "describe_network_interfaces", "NetworkInterfaces")
    using = [
        each["NetworkInterfaceId"]
        for each in interfaces
        if identifier in {group["GroupId"] for group in each.get("Groups", ())}
    ]
    if using:
        raise ShoalError(f"network interfaces use it: {', '.join(using)}")
    for group in account.items("ec2", "describe_security_groups", "SecurityGroups"):
        for rules, revoke in (
            ("IpPermissions", ec2.revoke_security_group_ingress),
            ("IpPermissionsEgress", ec2.revoke_security_group_egress),
        ):
            for part in cleanup.between_groups(group.get(rules, ())):
                if identifier in (group["GroupId"], part["UserIdGroupPairs"][0]["GroupId"]):
                    revoke(GroupId=group["GroupId"], IpPermissions=[part])
    ec2.delete_security_group(GroupId=identifier)


def subnet(account: Account, identifier: str, _record: ResourceRecord) -> None:
    """Delete a subnet. If network interfaces block the deletion, raise ShoalError with their names, because AWS's own
    error does not name them."""
    ec2 = account.client("ec2")
    try:
        ec2.delete_subnet(SubnetId=identifier)
    except ClientError as error:
        interfaces = account.items("ec2", "describe_network_interfaces", "NetworkInterfaces")
        named = [
            f"{each['NetworkInterfaceId']} ({each.get('Description') or 'no description'})"
            for each in interfaces
            if each["SubnetId"] == identifier
        ]
        if error.response["Error"]["Code"] != "DependencyViolation" or not named:
            raise
        raise ShoalError(f"network interfaces in it are still in use: {', '.join(named)}") from None


def internet_gateway(account: Account, identifier: str, record: ResourceRecord) -> None:
    ec2 = account.client("ec2")
    for attachment in record.get("Attachments", ()):
        ec2.detach_internet_gateway(InternetGatewayId=identifier, VpcId=attachment["VpcId"])
    ec2.delete_internet_gateway(InternetGatewayId=identifier)


def elastic_ip(account: Account, identifier: str, record: ResourceRecord) -> None:
    """Disassociate and release an elastic IP address."""
    ec2 = account.client("ec2")
    if association := record.get("AssociationId"):
        with suppress(ClientError):  # AWS itself disassociates the address of a NAT gateway
            ec2.disassociate_address(AssociationId=association)
    ec2.release_address(AllocationId=identifier)


def route_table(account: Account, identifier: str, record: ResourceRecord) -> None:
    """Disassociate a route table from its subnets, and delete it."""
    ec2 = account.client("ec2")
    for association in record.get("Associations", ()):
        ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
    ec2.delete_route_table(RouteTableId=identifier)


def role(account: Account, name: str, _record: ResourceRecord) -> None:
    """Delete a role with its policies, after removing it from its instance profiles."""
    iam = account.client("iam")
    for policy in account.items("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=name):
        iam.detach_role_policy(RoleName=name, PolicyArn=policy["PolicyArn"])
    for policy in account.items("iam", "list_role_policies", "PolicyNames", RoleName=name):
        iam.delete_role_policy(RoleName=name, PolicyName=policy)
    for profile in account.items("iam", "list_instance_profiles_for_role", "InstanceProfiles", RoleName=name):
        iam.remove_role_from_instance_profile(InstanceProfileName=profile["InstanceProfileName"], RoleName=name)
    iam.delete_role(RoleName=name)


def instance_profile(account: Account, name: str, record: ResourceRecord) -> None:
    """Remove the role of an instance profile, and delete the profile."""
    iam = account.client("iam")
    for held in record.get("Roles", ()):
        iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=held["RoleName"])
    iam.delete_instance_profile(InstanceProfileName=name)


def rule(account: Account, name: str, _record: ResourceRecord) -> None:
    """Delete an EventBridge rule with its targets."""
    events = account.client("events")
    if targets := [target["Id"] for target in events.list_targets_by_rule(Rule=name)["Targets"]]:
        events.remove_targets(Rule=name, Ids=targets)
    events.delete_rule(Name=name)
