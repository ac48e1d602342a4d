"""Tests of the requests that the S3 gateway allows in each kind of network."""

import pytest

from tests.infra import invariants, reach
from tests.infra.invariants import of_type
from tests.infra.pages import demo
from tests.infra.templates import annotations

GIVEN = {"vpc": "vpc-0123456789abcdef0", "subnet": "subnet-0123456789abcdef0"}


def test_a_region_with_two_zones_gets_two_subnets(templates):
    assert len(of_type(templates.resources(demo(region="us-west-1")), "AWS::EC2::Subnet")) == 2


def test_an_existing_network_causes_no_warning(synthesise, tmp_path):
    stack = synthesise(demo(network=GIVEN, zone="us-east-1b"), tmp_path)
    stack.node.root.synth()
    assert annotations(stack, "warning") == set()


def test_in_every_region_the_gateway_allows_exactly_what_nodes_need(templates):
    assert reach.wrong(templates.resources(demo(region="eu-west-1")), "eu-west-1") == []


def test_nat_allows_no_incoming_connections(templates):
    assert invariants.open_doors(templates.resources(demo(network={"egress": "nat"}))) == []


@pytest.mark.parametrize("network", [{"egress": "nat"}, GIVEN])
def test_with_nat_the_gateway_allows_everything(network, templates):
    resources = templates.resources(demo(network=network, zone="us-east-1b"))
    assert reach.passes(resources, reach.Request(action="PutObject", bucket="theirs", of=reach.THEIRS)) is None
