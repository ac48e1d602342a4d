"""Computes the hourly prices of a stack's resources from its constructs. Call `prices_of` during synthesis. Constructs
that are added later do not count."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import CfnResource, Stack, Token
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_emr as emr

from shoal_guard.price_lists import PriceList, Prices

_REGION = "us-east-1"
"""Region for which prices are used if the stack has no fixed region."""
_ADDRESS_HOUR = 0.005
"""Dollars per hour of a public IPv4 address, for price lists that lack it. The price is the same in every region since
2024-02-01 ("New - AWS Public IPv4 Address Charge + Public IP Insights", AWS News Blog, 2023-07-28)."""
_BY_THE_HOUR = frozenset(
    {
        "AWS::AmazonMQ::Broker",
        "AWS::Batch::ComputeEnvironment",
        "AWS::CloudFormation::Stack",  # the guard does not see the instances of a nested stack
        "AWS::DAX::Cluster",
        "AWS::DocDB::DBInstance",
        "AWS::EC2::EC2Fleet",
        "AWS::EC2::SpotFleet",
        "AWS::ECS::Service",
        "AWS::EKS::Cluster",
        "AWS::EKS::Nodegroup",
        "AWS::EMR::InstanceFleetConfig",
        "AWS::EMR::InstanceGroupConfig",
        "AWS::ElastiCache::CacheCluster",
        "AWS::ElastiCache::ReplicationGroup",
        "AWS::ElasticLoadBalancing::LoadBalancer",
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        "AWS::FSx::FileSystem",
        "AWS::Kinesis::Stream",
        "AWS::MSK::Cluster",
        "AWS::Neptune::DBInstance",
        "AWS::NetworkFirewall::Firewall",
        "AWS::OpenSearchServerless::Collection",
        "AWS::OpenSearchService::Domain",
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        "AWS::Redshift::Cluster",
        "AWS::RedshiftServerless::Workgroup",
        "AWS::SageMaker::Endpoint",
        "AWS::SageMaker::NotebookInstance",
    }
)
"""Resource types with an hourly price that the price lists do not have."""


@dataclass(kw_only=True)
class StackPrices:
    """Prices of a stack's resources in dollars per hour."""

    instances: dict[str, float] = field(default_factory=dict)
    """Price of an EC2 instance with a public address, by instance type."""
    of_emr: dict[str, float] = field(default_factory=dict)
    """Price of an EMR instance with EMR's surcharge and a public address, by instance type."""
    standing: float = 0.0
    """Sum of the prices of all resources that run as long as the stack."""
    unpriced: set[str] = field(default_factory=set)
    """Resource types and instance types with an unknown hourly price."""


def prices_of(stack: Stack) -> StackPrices:
    """Return the hourly prices of all resources of a stack."""
    found = StackPrices()
    known = PriceList.newest(_REGION if Token.is_unresolved(stack.region) else stack.region)
    address = _ADDRESS_HOUR if known.other.public_ipv4_hour is None else known.other.public_ipv4_hour
    for each in stack.node.find_all():
        if isinstance(each, CfnResource):
            for name in _types(Stack.of(each), each):
                own = known.instances.get(name)
                added = known.emr.get(name) if isinstance(each, emr.CfnCluster) else 0.0
                if own is None or added is None:
                    found.unpriced.add(name)
                else:
                    priced = found.of_emr if isinstance(each, emr.CfnCluster) else found.instances
                    priced[name] = own + added + address
            _add_fixed_price(found, each, known.other, address)
            if isinstance(each, autoscaling.CfnAutoScalingGroup) and not _names_machines(stack, each):
                found.unpriced.add(each.cfn_resource_type)
    return found


def _add_fixed_price(found: StackPrices, resource: CfnResource, known: Prices, address: float) -> None:
    kind, hour, count = resource.cfn_resource_type, None, 1
    if kind == "AWS::EC2::NatGateway":
        hour = known.nat_gateway_hour
    elif kind == "AWS::EC2::EIP":
        hour = address
    elif isinstance(resource, ec2.CfnVPCEndpoint) and resource.vpc_endpoint_type != "Gateway":
        hour, count = known.interface_endpoint_hour, max(1, len(resource.subnet_ids or ()))
    elif kind not in _BY_THE_HOUR:
        return
    if hour is None:
        found.unpriced.add(kind)
    else:
        found.standing += hour * count


def _types(stack: Stack, resource: CfnResource) -> Iterator[str]:
    """Yield the instance types that a resource names. If a parameter sets the type, yield a token without a price."""
    if isinstance(resource, ec2.CfnInstance):
        yield str(stack.resolve(resource.instance_type))
    elif isinstance(resource, ec2.CfnLaunchTemplate):
        yield from _named(stack.resolve(resource.launch_template_data))
    elif isinstance(resource, autoscaling.CfnLaunchConfiguration):
        yield str(stack.resolve(resource.instance_type))
    elif isinstance(resource, autoscaling.CfnAutoScalingGroup):
        yield from _named(stack.resolve(resource.mixed_instances_policy))
    elif isinstance(resource, emr.CfnCluster):
        yield from _named(stack.resolve(resource.instances))


def _named(value: Any) -> Iterator[str]:
    """Yield the value of each key `instanceType` or `InstanceType`, at any depth."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key.lower() == "instancetype":
                yield str(each)
            else:
                yield from _named(each)
    elif isinstance(value, list):
        for each in value:
            yield from _named(each)


def _names_machines(stack: Stack, group: autoscaling.CfnAutoScalingGroup) -> bool:
    """Return whether the group itself, or a launch template of the stack that it uses, names instance types."""
    if any(_types(stack, group)):
        return True
    references = json.dumps(
        stack.resolve([group.launch_template, group.launch_configuration_name, group.mixed_instances_policy])
    )
    return any(
        f'"{stack.get_logical_id(each)}"' in references and any(_types(stack, each))
        for each in stack.node.find_all()
        if isinstance(each, ec2.CfnLaunchTemplate | autoscaling.CfnLaunchConfiguration)
    )
