"""Rules on an existing network's endpoints and DNS: nodes find AWS's services by name, and the services let them in.

An interface endpoint with private DNS takes the place of the service's public address for the whole VPC, also where a
route leads out. The deployment's own security groups do not exist yet, so an endpoint must admit the subnet's
addresses; a group of an earlier deployment of this name is admitted by its tag.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bootstrap.lifecycle.rules import PreflightContext
from bootstrap.lifecycle.rules.network import endpoints_of, existing_subnet, leads_out, route_table
from infra.sizing import INTERFACE_ENDPOINTS
from infra.topology import TAG_DEPLOYMENT

_HTTPS = 443


def no_dns(context: PreflightContext) -> Iterator[str]:
    """The VPC resolves no names, or gives none, which EMR, EFS and interface endpoints need; and the command."""
    if context.topology.network.subnet is None or (subnet := existing_subnet(context)) is None:
        return
    topology, vpc = context.topology, subnet["VpcId"]
    needed = {"enableDnsSupport": "nodes find no service of AWS"}
    if topology.preprocessing or topology.share == "efs" or topology.network.shell:
        needed["enableDnsHostnames"] = "EMR, EFS and interface endpoints need it"
    for attribute, why in needed.items():
        answer = context.account.client("ec2").describe_vpc_attribute(VpcId=vpc, Attribute=attribute)
        if not answer[attribute[0].upper() + attribute[1:]]["Value"]:
            option = "support" if attribute == "enableDnsSupport" else "hostnames"
            yield (
                f"network, vpc: {attribute} of {vpc} is off, and {why}; turn it on: aws ec2 modify-vpc-attribute "
                f"--region {topology.region} --vpc-id {vpc} --enable-dns-{option}"
            )


def endpoint_unusable(context: PreflightContext) -> Iterator[str]:
    """An endpoint that nodes need is not available, is not found by the service's name, or does not let them in."""
    network = context.topology.network
    if network.subnet is None or (subnet := existing_subnet(context)) is None:
        return
    table = route_table(context)
    out = table is not None and leads_out(table)
    endpoints = endpoints_of(context, subnet["VpcId"])
    for endpoint in endpoints:
        if not out and table and table["RouteTableId"] in endpoint.get("RouteTableIds", ()):
            yield from _not_available(context, endpoint)
    for service in INTERFACE_ENDPOINTS if network.shell else ():
        name = f"com.amazonaws.{context.topology.region}.{service}"
        problems = [_problems(context, each, subnet, out=out) for each in endpoints if each["ServiceName"] == name]
        if problems and all(problems):
            yield from problems[0]


def _problems(
    context: PreflightContext, endpoint: Mapping[str, Any], subnet: Mapping[str, Any], *, out: bool
) -> list[str]:
    """Why nodes do not reach a service by an interface endpoint; `out`: whether they reach it otherwise."""
    name, region = endpoint["VpcEndpointId"], context.topology.region
    if not endpoint.get("PrivateDnsEnabled"):
        modify = f"aws ec2 modify-vpc-endpoint --region {region} --vpc-endpoint-id {name} --private-dns-enabled"
        return [] if out else [f"network, vpc: nodes do not find {name} without private DNS; turn it on: {modify}"]
    if found := list(_not_available(context, endpoint)):
        return found
    groups = [group["GroupId"] for group in endpoint.get("Groups", ())]
    if _admit(context, groups, subnet):
        return []
    return [
        f"network, vpc: no security group of {name} ({endpoint['ServiceName']}) admits {subnet['CidrBlock']} of "
        f"{subnet['SubnetId']} to port {_HTTPS}; allow it: aws ec2 authorize-security-group-ingress --region {region} "
        f"--group-id {groups[0] if groups else 'GROUP'} --protocol tcp --port {_HTTPS} --cidr {subnet['CidrBlock']}; "
        "or leave `shell` out"
    ]


def _not_available(context: PreflightContext, endpoint: Mapping[str, Any]) -> Iterator[str]:
    state = str(endpoint["State"])
    if state.lower() != "available":
        name, service = endpoint["VpcEndpointId"], endpoint["ServiceName"]
        yield (
            f"network, vpc: the endpoint {name} ({service}) is {state}, not available; look why: aws ec2 "
            f"describe-vpc-endpoints --region {context.topology.region} --vpc-endpoint-ids {name}"
        )


def _admit(context: PreflightContext, groups: Sequence[str], subnet: Mapping[str, Any]) -> bool:
    """Whether one of the security groups admits the subnet's addresses, or this deployment's groups, to HTTPS."""
    if not groups:
        return False
    found = context.account.items("ec2", "describe_security_groups", "SecurityGroups", GroupIds=groups)
    rules = [rule for group in found for rule in group["IpPermissions"] if _opens_https(rule)]
    inside = ipaddress.IPv4Network(subnet["CidrBlock"])
    blocks = [ipaddress.IPv4Network(each["CidrIp"]) for rule in rules for each in rule.get("IpRanges", ())]
    sources = [each["GroupId"] for rule in rules for each in rule.get("UserIdGroupPairs", ()) if "GroupId" in each]
    own = [{"Name": f"tag:{TAG_DEPLOYMENT}", "Values": [context.deployment]}]
    return any(map(inside.subnet_of, blocks)) or any(
        group["GroupId"] in sources
        for group in context.account.items("ec2", "describe_security_groups", "SecurityGroups", Filters=own)
    )


def _opens_https(rule: Mapping[str, Any]) -> bool:
    if rule["IpProtocol"] == "-1":
        return True
    return rule["IpProtocol"] in ("tcp", "6") and rule["FromPort"] <= _HTTPS <= rule["ToPort"]
