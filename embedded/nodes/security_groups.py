"""Makes ministack's security groups behave like EC2's.

Each stored rule has one source, whatever a request combines, so that every rule that DescribeSecurityGroups returns can
be revoked unchanged.
"""

from typing import Any

from embedded.seams import ec2
from embedded.service import Record

_SOURCES = {
    "IpRanges": "CidrIp",
    "Ipv6Ranges": "CidrIpv6",
    "PrefixListIds": "PrefixListId",
    "UserIdGroupPairs": "GroupId",
}


def install() -> None:
    """Make ministack's security groups as strict as EC2's."""
    read = ec2.read_permissions.now

    def by_source(parameters: Record, prefix: str) -> list[Record]:
        return [single for rule in read(parameters, prefix) for single in _by_source(rule)]

    ec2.read_permissions.put(by_source)
    ec2.same_rule.put(lambda one, other: _identity(one) == _identity(other))


def _by_source(rule: Record) -> list[Record]:
    empty = {**rule, **{name: [] for name in _SOURCES}}
    return [{**empty, name: [source]} for name in _SOURCES for source in rule.get(name) or []] or [rule]


def _identity(rule: Record) -> tuple[Any, ...]:
    """The fields that make two rules the same: protocol, ports and sources, not descriptions or a group's account."""
    sources = frozenset(
        (name, source.get(key) or source.get("GroupName"))
        for name, key in _SOURCES.items()
        for source in rule.get(name) or []
    )
    return str(rule["IpProtocol"]), rule.get("FromPort"), rule.get("ToPort"), sources
