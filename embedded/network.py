"""Security groups as EC2 has them where ministack is kinder or coarser, and what EMR does to them.

A rule has one source, whatever a request put together, so that what DescribeSecurityGroups tells can be revoked as it
stands. EMR adds rules that nobody declared, by which its groups refer to each other: whoever deletes them must revoke
those first.
"""

from collections.abc import Mapping
from typing import Any

from ministack.services import ec2

from embedded.service import Record, client

_SOURCES = {
    "IpRanges": "CidrIp",
    "Ipv6Ranges": "CidrIpv6",
    "PrefixListIds": "PrefixListId",
    "UserIdGroupPairs": "GroupId",
}


def install() -> None:
    """Make ministack's security groups as strict as EC2's."""
    parse = ec2._parse_ip_permissions

    def parsed(parameters: Record, prefix: str) -> list[Record]:
        return [single for rule in parse(parameters, prefix) for single in _by_source(rule)]

    ec2._parse_ip_permissions = parsed
    ec2._rules_match = lambda one, other: _identity(one) == _identity(other)


def _by_source(rule: Record) -> list[Record]:
    """A rule for every source of a rule."""
    empty = {**rule, **{name: [] for name in _SOURCES}}
    return [{**empty, name: [source]} for name in _SOURCES for source in rule.get(name) or []] or [rule]


def _identity(rule: Record) -> tuple[Any, ...]:
    """What makes two rules the same: protocol, ports, sources; not descriptions, nor whose account a group is in."""
    sources = frozenset(
        (name, source.get(key) or source.get("GroupName"))
        for name, key in _SOURCES.items()
        for source in rule.get(name) or []
    )
    return str(rule["IpProtocol"]), rule.get("FromPort"), rule.get("ToPort"), sources


def allow_traffic_of_cluster(attributes: Mapping[str, Any]) -> None:
    """Add the rules that EMR adds to the groups it manages, and to the one by which its service reaches them.

    Args:
        attributes: the cluster's Ec2InstanceAttributes.
    """
    primary, core = attributes["EmrManagedMasterSecurityGroup"], attributes["EmrManagedSlaveSecurityGroup"]
    service = attributes.get("ServiceAccessSecurityGroup")
    if not primary or not core:
        return
    everything = (("tcp", 0, 65535), ("udp", 0, 65535), ("icmp", -1, -1))
    for group in {primary, core}:
        _permit("ingress", group, [_rule(*ports, source) for ports in everything for source in {primary, core}])
    if service:
        for group in {primary, core}:
            _permit("ingress", group, [_rule("tcp", 8443, 8443, service)])
            _permit("egress", service, [_rule("tcp", 8443, 8443, group)])
        _permit("ingress", service, [_rule("tcp", 9443, 9443, primary)])


def _permit(direction: str, group: str, permissions: list[Record]) -> None:
    getattr(client("ec2"), f"authorize_security_group_{direction}")(GroupId=group, IpPermissions=permissions)


def _rule(protocol: str, first: int, last: int, group: str) -> Record:
    return {"IpProtocol": protocol, "FromPort": first, "ToPort": last, "UserIdGroupPairs": [{"GroupId": group}]}
