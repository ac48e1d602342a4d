"""The zones of the price lists, in which networks are created."""

import boto3
import pytest

from infra import catalog, topology
from tests.infra.invariants import of_type
from tests.infra.variants import SHIPPED


@pytest.mark.parametrize("name", [name for name in topology.names_in(SHIPPED) if name != "managed"])
def test_every_zone_of_a_topology_offers_all_its_types(name, handled):
    spec = handled[name].spec
    zones = {each["AvailabilityZoneId"] for each in of_type(handled[name].resources, "AWS::EC2::Subnet").values()}
    assert zones
    for each in topology.instance_types(spec):
        assert zones <= {*catalog.prices(spec.region).zones.get(each, zones)}  # unknown for a retired type


def test_the_zones_of_the_price_list_are_those_of_the_emulator(aws):
    types = catalog.prices("us-east-1").zones
    filters = [{"Name": "instance-type", "Values": list(types)}]
    pages = boto3.client("ec2").get_paginator("describe_instance_type_offerings")
    found = pages.paginate(LocationType="availability-zone-id", Filters=filters).build_full_result()
    offered = [(each["InstanceType"], each["Location"]) for each in found["InstanceTypeOfferings"]]
    assert sorted(offered) == sorted((name, zone) for name, zones in types.items() for zone in zones)
