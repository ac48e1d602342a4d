"""Topologies in an account in which us-east-1a is use1-az3. This zone offers hardly any instance type of today."""

import boto3
import pytest
from shoal_local_aws.faults.zones import FIRST_ZONE
from tests.local_aws.accounts import running_aws

from infra import catalog, topology
from tests.infra.invariants import of_type
from tests.infra.variants import SHIPPED

IMAGE = "ami-0a1b2c3d4e5f60718"
TYPES = catalog.prices("us-east-1").zones


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FIRST_ZONE, "use1-az3")
        with running_aws(tmp_path_factory.mktemp("aws")):
            yield boto3.Session()


@pytest.fixture(scope="module")
def subnets(session):
    """Ids of a subnet in each zone, by the id of the zone."""
    ec2 = session.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    zones = [zone["ZoneId"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]]
    assert zones[0] == "use1-az3"
    blocks = {zone: {"CidrBlock": f"10.0.{number}.0/24"} for number, zone in enumerate(zones)}
    made = (ec2.create_subnet(VpcId=vpc, AvailabilityZoneId=zone, **block) for zone, block in blocks.items())
    return dict(zip(zones, (each["Subnet"]["SubnetId"] for each in made), strict=True))


@pytest.mark.parametrize("name", [name for name in topology.names(SHIPPED) if name != "managed"])
def test_every_zone_of_a_topology_offers_all_its_types(name, handled, session, subnets):
    spec, resources = handled[name].spec, handled[name].resources
    zones = [each["AvailabilityZoneId"] for each in of_type(resources, "AWS::EC2::Subnet").values()]
    data = {"ImageId": IMAGE, "InstanceType": "t2.micro"}
    session.client("ec2").create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    overrides = [{"InstanceType": each} for each in topology.instance_types(spec)]
    template = {"LaunchTemplateSpecification": {"LaunchTemplateName": name}, "Overrides": overrides}
    session.client("autoscaling").create_auto_scaling_group(
        AutoScalingGroupName=name,
        MinSize=0,
        MaxSize=1,
        VPCZoneIdentifier=",".join(subnets[zone] for zone in zones),
        MixedInstancesPolicy={"LaunchTemplate": template},
    )


def test_the_zones_of_the_price_list_are_those_of_the_emulator(session):
    filters = [{"Name": "instance-type", "Values": list(TYPES)}]
    pages = session.client("ec2").get_paginator("describe_instance_type_offerings")
    found = pages.paginate(LocationType="availability-zone-id", Filters=filters).build_full_result()
    offered = [(each["InstanceType"], each["Location"]) for each in found["InstanceTypeOfferings"]]
    assert sorted(offered) == sorted((name, zone) for name, zones in TYPES.items() for zone in zones)
