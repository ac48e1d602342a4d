"""Makes ministack's security groups and VPC endpoints behave as in EC2.

Each stored rule of a group has one source, even if a request combines several sources. So clients can revoke each rule
exactly as DescribeSecurityGroups returns it.
"""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams import ec2
from shoal_local_aws.service import Record, parameter

_SOURCES = {
    "IpRanges": "CidrIp",
    "Ipv6Ranges": "CidrIpv6",
    "PrefixListIds": "PrefixListId",
    "UserIdGroupPairs": "GroupId",
}


def install() -> None:
    """Make security groups as strict as in EC2. Store and return the endpoint settings that ministack drops."""
    read, render = ec2.read_permissions.now, ec2.endpoint_xml.now

    def by_source(parameters: Record, prefix: str) -> list[Record]:
        return [single for rule in read(parameters, prefix) for single in _by_source(rule)]

    # Belief: EC2 stores one rule for each source. No check: the acceptance run revokes rules when it deletes its stack.
    ec2.read_permissions.put(by_source)
    # Rule: Rules are revoked without their description. Source: botocore ec2 RevokeSecurityGroupIngress.
    ec2.same_rule.put(lambda one, other: _identity(one) == _identity(other))

    def endpoint_xml(record: Record, tag: str = "item") -> str:
        groups = "".join(f"<item><groupId>{group}</groupId></item>" for group in record.get("SecurityGroupIds") or ())
        private = "true" if record.get("PrivateDnsEnabled") else "false"
        more = f"<privateDnsEnabled>{private}</privateDnsEnabled><groupSet>{groups}</groupSet></{tag}>"
        return render(record, tag).removesuffix(f"</{tag}>") + more

    ec2.endpoint_xml.put(endpoint_xml)
    ec2.operations.wrap("CreateVpcEndpoint", _keeping)


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


def _keeping(create: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def create_and_keep(parameters: Record) -> Any:
        known = set(ec2.vpc_endpoints.keys())
        answer = create(parameters)
        for name in set(ec2.vpc_endpoints.keys()) - known:
            record = ec2.vpc_endpoints[name]
            # Rule: The group of an interface endpoint is the default group. Source: botocore ec2 CreateVpcEndpoint.
            # Belief: An interface endpoint has private DNS, unless refused. No check: it costs by the hour.
            if record["VpcEndpointType"] == "Interface":
                record["SecurityGroupIds"] = ec2.list_parameter(parameters, "SecurityGroupId") or [
                    group["GroupId"]
                    for group in ec2.security_groups.values()
                    if group["VpcId"] == record["VpcId"] and group["GroupName"] == "default"
                ]
                record["PrivateDnsEnabled"] = parameter(parameters, "PrivateDnsEnabled") != "false"
        return answer

    return create_and_keep
