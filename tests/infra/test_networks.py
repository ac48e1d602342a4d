"""The network that a topology chooses: zones, a way out, or one that exists."""

import json
from pathlib import Path

import pytest
from aws_cdk.assertions import Annotations, Match

from infra import topology
from tests.infra import invariants, reach
from tests.infra.invariants import needs, of_type, references, the
from tests.infra.templates import ResourcesOf, Synthesise, Templates

GIVEN = {"vpc": "vpc-0123456789abcdef0", "subnet": "subnet-0123456789abcdef0"}


def of(**fields: object) -> topology.Topology:
    whole = {
        "name": "mine",
        "description": "x",
        "preprocessing": {"primary": {"instance_type": "m5.xlarge"}},
        "training": [{"instance_type": "g5.xlarge", "count": 2}],
        "share": "efs",
    }
    return topology.Topology.model_validate({**whole, **fields})


@pytest.fixture(scope="module")
def resources_of(templates: Templates) -> ResourcesOf:
    return lambda **fields: templates.resources(of(**fields))


def test_a_zone_that_is_chosen_is_the_only_one(resources_of: ResourcesOf) -> None:
    found = of_type(resources_of(zone="us-east-1c"), "AWS::EC2::Subnet").values()
    assert [subnet["AvailabilityZone"] for subnet in found] == ["us-east-1c"]


def test_a_region_that_shows_two_zones_is_asked_for_no_third(resources_of: ResourcesOf) -> None:
    assert len(of_type(resources_of(region="us-west-1"), "AWS::EC2::Subnet")) == 2


def test_one_nat_gateway_lets_the_nodes_of_all_zones_out_and_nobody_in(resources_of: ResourcesOf) -> None:
    resources = resources_of(network={"egress": "nat"})
    nat, gateway = the(resources, "AWS::EC2::NatGateway")
    exits = [each for each in of_type(resources, "AWS::EC2::Route").values() if "NatGatewayId" in each]
    assert len(exits) == 3
    assert all(set(references(each["NatGatewayId"])) == {nat} for each in exits)
    (public,) = references(gateway["SubnetId"])
    assert public.startswith("NetworkExit")
    assert invariants.open_doors(resources) == []


@pytest.mark.parametrize("shell", [False, True])
def test_with_a_way_out_a_shell_needs_no_endpoint_but_the_nodes_role_alone(
    shell: bool, resources_of: ResourcesOf
) -> None:
    resources = resources_of(network={"egress": "nat", "shell": shell})
    (endpoint,) = of_type(resources, "AWS::EC2::VPCEndpoint").values()
    assert endpoint["VpcEndpointType"] == "Gateway"
    for part in ("Preprocessing", "Training"):
        role = the(resources, "AWS::IAM::Role", f"{part}NodeRole")[1]
        assert ("AmazonSSMManagedInstanceCore" in json.dumps(role)) is shell


def test_only_nodes_subnets_are_found_as_such(resources_of: ResourcesOf) -> None:
    resources = resources_of(network={"egress": "nat"})
    found = [
        name
        for name, each in of_type(resources, "AWS::EC2::Subnet").items()
        if {"Key": topology.TAG_NODES, "Value": "true"} in each["Tags"]
    ]
    assert len(found) == 3
    assert not [name for name in found if "Exit" in name]


def test_nodes_come_after_the_way_out_and_go_before_it(resources_of: ResourcesOf) -> None:
    resources = resources_of(network={"egress": "nat"})
    way = {the(resources, "AWS::EC2::NatGateway")[0], *of_type(resources, "AWS::EC2::Route")}
    for kind in ("AWS::EMR::Cluster", "AWS::AutoScaling::AutoScalingGroup"):
        assert way <= needs(resources, the(resources, kind)[0])


def test_choosing_a_way_out_later_leaves_the_nodes_where_they_are(resources_of: ResourcesOf) -> None:
    before, after = (of_type(resources_of(network={"egress": way}), "AWS::EC2::Subnet") for way in ("none", "nat"))
    assert {name: after.get(name) for name in before} == before


def test_a_network_that_was_given_is_used_and_nothing_is_added_to_it_but_security_groups(
    resources_of: ResourcesOf,
) -> None:
    resources = resources_of(network=GIVEN, zone="us-east-1b")
    kinds = {each["Type"] for each in resources.values() if each["Type"].startswith("AWS::EC2::")}
    assert kinds == {
        "AWS::EC2::LaunchTemplate",
        "AWS::EC2::PlacementGroup",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
    }
    assert {each["VpcId"] for each in of_type(resources, "AWS::EC2::SecurityGroup").values()} == {GIVEN["vpc"]}


def test_all_machines_are_in_the_subnet_that_was_given(resources_of: ResourcesOf) -> None:
    resources = resources_of(network=GIVEN, zone="us-east-1b")
    places = [
        the(resources, "AWS::EMR::Cluster")[1]["Instances"]["Ec2SubnetId"],
        *the(resources, "AWS::AutoScaling::AutoScalingGroup")[1]["VPCZoneIdentifier"],
        the(resources, "AWS::EFS::MountTarget")[1]["SubnetId"],
    ]
    assert places == [GIVEN["subnet"]] * 3


def test_a_deployment_that_takes_no_warnings_may_be_given_a_network(synthesise: Synthesise, tmp_path: Path) -> None:
    stack = synthesise(of(network=GIVEN, zone="us-east-1b"), tmp_path)
    warnings = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    assert not [json.dumps(each.entry.data) for each in warnings]


def test_in_every_region_the_gateway_lets_through_what_nodes_need_and_carries_nothing_away(
    resources_of: ResourcesOf,
) -> None:
    assert reach.wrong(resources_of(region="eu-west-1"), "eu-west-1") == []


def test_a_bucket_that_was_given_is_written_to_though_it_may_be_another_accounts(
    resources_of: ResourcesOf,
) -> None:
    resources = resources_of(data={"bucket": "their-data"})
    assert reach.wrong(resources, "us-east-1") == []
    for action in ("PutObject", "DeleteObject", "ListBucketMultipartUploads", "AbortMultipartUpload"):
        assert reach.passes(resources, reach.Request(action=action, bucket="their-data", of=reach.THEIRS))
        brought = reach.Request(action=action, bucket="their-data", of=reach.THEIRS, by=reach.THEIRS)
        assert not reach.passes(resources, brought)


@pytest.mark.parametrize("network", [{"egress": "nat"}, GIVEN])
def test_where_there_is_another_way_out_the_gateway_holds_nothing_back(
    network: dict[str, str], resources_of: ResourcesOf
) -> None:
    resources = resources_of(network=network, zone="us-east-1b")
    assert reach.passes(resources, reach.Request(action="PutObject", bucket="theirs", of=reach.THEIRS)) is None
