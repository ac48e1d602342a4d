import pytest

from infra import topology
from tests.infra import reach
from tests.infra.invariants import of_type
from tests.infra.pages import demo
from tests.infra.templates import annotations

GIVEN = {"vpc": "vpc-0123456789abcdef0", "subnet": "subnet-0123456789abcdef0"}


def subnets_of_nodes(resources):
    tag = {"Key": topology.TAG_NODES, "Value": "true"}
    return {name for name, each in of_type(resources, "AWS::EC2::Subnet").items() if tag in each["Tags"]}


def tables_of_nodes(resources):
    """Return the route table of each subnet for nodes."""
    associations = of_type(resources, "AWS::EC2::SubnetRouteTableAssociation").values()
    tables = {each["SubnetId"]["Ref"]: each["RouteTableId"]["Ref"] for each in associations}
    return sorted(tables[name] for name in subnets_of_nodes(resources))


def test_with_nat_the_nodes_of_every_zone_have_a_route_to_the_gateway(templates):
    resources = templates.resources(demo(network={"egress": "nat"}))
    (gateway,) = of_type(resources, "AWS::EC2::NatGateway")
    routes = of_type(resources, "AWS::EC2::Route").values()
    outwards = [each for each in routes if each.get("NatGatewayId") == {"Ref": gateway}]
    assert {each["DestinationCidrBlock"] for each in outwards} == {"0.0.0.0/0"}
    assert sorted(each["RouteTableId"]["Ref"] for each in outwards) == tables_of_nodes(resources)
    assert len(outwards) > 1


@pytest.mark.parametrize("network", [{}, {"egress": "nat"}], ids=["isolated", "nat"])
def test_the_nodes_of_every_zone_reach_s3_through_the_gateway(network, templates):
    resources = templates.resources(demo(network=network))
    gateways = [each for each in of_type(resources, "AWS::EC2::VPCEndpoint").values() if "RouteTableIds" in each]
    assert [sorted(each["Ref"] for each in gateway["RouteTableIds"]) for gateway in gateways] == [
        tables_of_nodes(resources)
    ]


def test_the_share_is_mounted_in_every_zone(templates):
    resources = templates.resources(demo(share="efs"))
    targets = of_type(resources, "AWS::EFS::MountTarget").values()
    assert {each["SubnetId"]["Ref"] for each in targets} == subnets_of_nodes(resources)
    assert len(targets) > 1


def test_a_region_with_two_zones_gets_two_subnets(templates):
    assert len(of_type(templates.resources(demo(region="us-west-1")), "AWS::EC2::Subnet")) == 2


def test_an_existing_network_causes_no_warning(synthesise, tmp_path):
    stack = synthesise(demo(network=GIVEN, zone="us-east-1b"), tmp_path)
    stack.node.root.synth()
    assert annotations(stack, "warning") == set()


def test_in_every_region_the_gateway_allows_exactly_what_nodes_need(templates):
    assert reach.wrong(templates.resources(demo(region="eu-west-1")), "eu-west-1") == []


@pytest.mark.parametrize("network", [{"egress": "nat"}, GIVEN])
def test_with_nat_the_gateway_allows_everything(network, templates):
    resources = templates.resources(demo(network=network, zone="us-east-1b"))
    assert reach.passes(resources, reach.Request(action="PutObject", bucket="theirs", of=reach.THEIRS)) is None
