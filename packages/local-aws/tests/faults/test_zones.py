"""Zones of the account: their ids, the instance types that each offers, and refusals of other types."""

import itertools

import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import NotOffered
from tests.local_aws.scaling import Group

_names = (f"zoned-{number}" for number in itertools.count())
OLD = "use1-az3"


@pytest.fixture(scope="module")
def subnets(client):
    """Return the subnets of a network by the ids of their zones."""
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    zones = [each["ZoneId"] for each in ec2.describe_availability_zones()["AvailabilityZones"]]
    made = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZoneId=zone)["Subnet"]
        for number, zone in enumerate(zones)
    ]
    assert [each["AvailabilityZoneId"] for each in made] == zones
    return {each["AvailabilityZoneId"]: each["SubnetId"] for each in made}


@pytest.fixture
def make(aws, client, subnets):
    def group(zone, **more):
        return Group(aws, client, next(_names), VPCZoneIdentifier=subnets[zone], **more)

    return group


def test_offerings_of_unknown_types_are_refused(client, messages):
    with messages.raises(ClientError):
        client("ec2").describe_instance_type_offerings()


def test_a_group_is_created_only_if_its_zone_offers_its_types(make, messages):
    with messages.raises(ClientError):
        make(OLD)
    with messages.raises(ClientError):
        make("use1-az5", spot={}, types=["g5.xlarge", "g6e.xlarge"])
    make(OLD, data={"InstanceType": "m4.xlarge"})


def test_a_group_moves_only_to_a_zone_that_offers_its_type(make, subnets, messages):
    group = make("use1-az1")
    with messages.raises(ClientError):
        group.update(VPCZoneIdentifier=subnets[OLD])
    assert group.described()["VPCZoneIdentifier"] == subnets["use1-az1"]


def test_a_group_of_a_type_that_is_no_longer_offered_still_changes_its_size(make, aws):
    group = make("use1-az1")
    with aws.faults.during(NotOffered(instance_type="g5.xlarge")):
        group.update(MaxSize=2)


def test_a_region_without_a_type_refuses_its_configuration(make, aws, messages):
    with aws.faults.during(NotOffered(instance_type="g5.xlarge")), messages.raises(ClientError):
        make("use1-az1")


@pytest.mark.parametrize("zone", [{"AvailabilityZone": "us-east-1g"}, {"AvailabilityZoneId": "use1-az7"}])
def test_a_subnet_needs_a_zone_of_the_account(zone, client, messages):
    with messages.raises(ClientError):
        client("ec2").create_subnet(VpcId="vpc-00000001", CidrBlock="172.31.240.0/24", **zone)
