"""Checks that a cluster's security groups have the rules that EMR requires, and adds the rules that EMR adds.

EMR adds rules that let its groups refer to each other, so these rules must be revoked before the groups are deleted.
"""

from collections.abc import Mapping
from typing import Any

from shoal_local_aws.seams import ec2
from shoal_local_aws.service import Record, client


def refusal_of_groups(attributes: Mapping[str, Any]) -> str:
    """Return why EMR does not start a cluster with these Ec2InstanceAttributes, or an empty string if it starts."""
    primary, core = attributes.get("EmrManagedMasterSecurityGroup"), attributes.get("EmrManagedSlaveSecurityGroup")
    service = attributes.get("ServiceAccessSecurityGroup")
    if not primary or not core:
        return ""
    # Rule: A private subnet needs a service group. Source: "Working with Amazon EMR-managed security groups".
    if not service:
        if not _is_private(attributes.get("Ec2SubnetId")):
            return ""
        return (
            "You must also specify a ServiceAccessSecurityGroup if you use custom security groups when creating a "
            "cluster in a private subnet."
        )
    group = ec2.security_groups[service]
    # Rule: The service group lets the primary node in. Source: hashicorp/terraform#25673.
    if not _passes(group["IpPermissions"], 9443, primary):
        return "ServiceAccessSecurityGroup is missing ingress rule from EmrManagedMasterSecurityGroup on port 9443"
    for name, other in (("EmrManagedMasterSecurityGroup", primary), ("EmrManagedSlaveSecurityGroup", core)):
        # Belief: The service group lets traffic to the nodes out. No check: it costs a cluster.
        if not _passes(group["IpPermissionsEgress"], 8443, other):
            return f"ServiceAccessSecurityGroup is missing egress rule to {name} on port 8443"
    return ""


def _passes(rules: list[Record], port: int, group: str) -> bool:
    """Return whether a rule allows TCP traffic on a port from or to the members of a security group."""
    return any(
        any(pair.get("GroupId") == group for pair in rule.get("UserIdGroupPairs") or [])
        or any(source.get("CidrIp") == "0.0.0.0/0" for source in rule.get("IpRanges") or [])
        for rule in rules
        if str(rule["IpProtocol"]) == "-1"
        or (rule["IpProtocol"] == "tcp" and int(rule["FromPort"]) <= port <= int(rule["ToPort"]))
    )


def _is_private(subnet: str | None) -> bool:
    """Return whether a subnet has no route to an internet gateway. None stands for a default subnet."""
    record = ec2.subnets.get(subnet or "")
    if record is None:
        return False
    tables = [table for table in ec2.route_tables.values() if table["VpcId"] == record["VpcId"]]
    own = [table for table in tables if any(each.get("SubnetId") == subnet for each in table["Associations"])]
    main = [table for table in tables if any(each.get("Main") for each in table["Associations"])]
    return not any(str(route.get("GatewayId")).startswith("igw-") for table in own or main for route in table["Routes"])


def allow_traffic_of_cluster(attributes: Mapping[str, Any]) -> None:
    """Add the ingress rules that EMR adds to the security groups of a cluster's nodes."""
    primary, core = attributes["EmrManagedMasterSecurityGroup"], attributes["EmrManagedSlaveSecurityGroup"]
    service = attributes.get("ServiceAccessSecurityGroup")
    if not primary or not core:
        return
    everything = (("tcp", 0, 65535), ("udp", 0, 65535), ("icmp", -1, -1))
    # Rule: EMR adds missing inbound rules to custom groups. Source: "Working with Amazon EMR-managed security groups".
    for group in {primary, core}:
        _let_in(group, [_rule(*ports, source) for ports in everything for source in {primary, core}])
        if service:
            _let_in(group, [_rule("tcp", 8443, 8443, service)])


def _let_in(group: str, permissions: list[Record]) -> None:
    client("ec2").authorize_security_group_ingress(GroupId=group, IpPermissions=permissions)


def _rule(protocol: str, first: int, last: int, group: str) -> Record:
    return {"IpProtocol": protocol, "FromPort": first, "ToPort": last, "UserIdGroupPairs": [{"GroupId": group}]}
