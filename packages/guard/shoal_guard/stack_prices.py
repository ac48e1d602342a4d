"""What of any stack costs by the hour, by its constructs when they are synthesised."""

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
"""Whose prices count where a stack is not bound to a region."""
_ADDRESS_HOUR = 0.005
"""Of a public IPv4 address, in every region since 2024-02-01 ("New - AWS Public IPv4 Address Charge + Public IP
Insights", AWS News Blog, 2023-07-28), for lists without it."""
_BY_THE_HOUR = frozenset(
    {
        "AWS::AmazonMQ::Broker",
        "AWS::Batch::ComputeEnvironment",
        "AWS::CloudFormation::Stack",  # a nested one, whose machines are not seen while they run
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
"""Types whose price depends on more than the price lists have."""


@dataclass(kw_only=True)
class StackPrices:
    """Dollars an hour: of instances, and of those of EMR, by type; and of what runs as long as the stack does.

    `unpriced` has the types of what costs by the hour and has no price here.
    """

    instances: dict[str, float] = field(default_factory=dict)
    of_emr: dict[str, float] = field(default_factory=dict)
    standing: float = 0.0
    unpriced: set[str] = field(default_factory=set)


def prices_of(stack: Stack) -> StackPrices:
    """Look through all constructs of a stack."""
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
            _add_standing(found, each, known.other, address)
            if isinstance(each, autoscaling.CfnAutoScalingGroup) and not _names_machines(stack, each):
                found.unpriced.add(each.cfn_resource_type)
    return found


def _add_standing(found: StackPrices, resource: CfnResource, known: Prices, address: float) -> None:
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
    """The instance types that a resource names; of one that is a parameter, what stands for it, which has no price."""
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
    """Each value of a key `instanceType` or `InstanceType` in it, however deep."""
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
    """Whether a group's instance types are read: they are its own, or those of a template of the stack."""
    if any(_types(stack, group)):
        return True
    told = json.dumps(
        stack.resolve([group.launch_template, group.launch_configuration_name, group.mixed_instances_policy])
    )
    return any(
        f'"{stack.get_logical_id(each)}"' in told and any(_types(stack, each))
        for each in stack.node.find_all()
        if isinstance(each, ec2.CfnLaunchTemplate | autoscaling.CfnLaunchConfiguration)
    )
