"""Makes ministack's security groups behave as in EC2, and its VPC endpoints keep their security groups.

Each stored rule of a group has one source, even if a request combines several sources. So clients can revoke each rule
exactly as DescribeSecurityGroups returns it.
"""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams import ec2
from shoal_local_aws.service import Record

_SOURCES = {
    "IpRanges": "CidrIp",
    "Ipv6Ranges": "CidrIpv6",
    "PrefixListIds": "PrefixListId",
    "UserIdGroupPairs": "GroupId",
}


def install() -> None:
    read = ec2.read_permissions.now

    def by_source(parameters: Record, prefix: str) -> list[Record]:
        return [single for rule in read(parameters, prefix) for single in _by_source(rule)]

    # Belief: EC2 stores one rule for each source. No check: the acceptance run revokes rules when it deletes its stack.
    ec2.read_permissions.put(by_source)
    # Rule: Rules are revoked without their description. Source: botocore ec2 RevokeSecurityGroupIngress.
    ec2.same_rule.put(lambda one, other: _identity(one) == _identity(other))
    ec2.operations.wrap("CreateVpcEndpoint", _keeping_groups)


def _by_source(rule: Record) -> list[Record]:
    empty = {**rule, **{name: [] for name in _SOURCES}}
    return [{**empty, name: [source]} for name in _SOURCES for source in rule.get(name) or []] or [rule]


def _identity(rule: Record) -> tuple[Any, ...]:
    """Return the values that identify a rule: protocol, ports and sources, without description and account."""
    sources = frozenset(
        (name, source.get(key) or source.get("GroupName"))
        for name, key in _SOURCES.items()
        for source in rule.get(name) or []
    )
    return str(rule["IpProtocol"]), rule.get("FromPort"), rule.get("ToPort"), sources


def _keeping_groups(create: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def create_and_keep(parameters: Record) -> Any:
        known = set(ec2.vpc_endpoints.keys())
        answer = create(parameters)
        for name in set(ec2.vpc_endpoints.keys()) - known:
            ec2.vpc_endpoints[name]["SecurityGroupIds"] = ec2.list_parameter(parameters, "SecurityGroupId")
        return answer

    return create_and_keep
