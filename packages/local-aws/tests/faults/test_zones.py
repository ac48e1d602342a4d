"""Zones of the account: their ids, the instance types that each offers, and refusals of other types."""

import itertools

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.account import use_emulator
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import NotOffered
from shoal_local_aws.faults.zones import FIRST_ZONE
from tests.local_aws.scaling import IMAGE, Group

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


@pytest.mark.parametrize("kind", ["availability-zone", "availability-zone-id", "region"])
def test_offerings_are_by_zone_name_zone_id_or_region(kind, client):
    ec2 = client("ec2")
    filters = [{"Name": "instance-type", "Values": ["g5.xlarge", "m4.xlarge"]}]
    found = ec2.describe_instance_type_offerings(LocationType=kind, Filters=filters)["InstanceTypeOfferings"]
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    names = {each["ZoneId"]: each["ZoneName"] if kind == "availability-zone" else each["ZoneId"] for each in zones}
    old = {each["InstanceType"] for each in found if each["Location"] == names[OLD]}
    places = {each["Location"] for each in found if each["InstanceType"] == "g5.xlarge"}
    if kind == "region":
        assert (len(found), places) == (2, {"us-east-1"})
    else:
        assert old == {"m4.xlarge"}
        assert places == {*names.values()} - {names[OLD]}


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


def test_an_instance_starts_only_in_a_zone_that_offers_its_type(client, subnets, messages):
    with messages.raises(ClientError):
        client("ec2").run_instances(
            ImageId=IMAGE, InstanceType="g5.xlarge", MinCount=1, MaxCount=1, SubnetId=subnets[OLD]
        )


@pytest.mark.parametrize("zone", [{"AvailabilityZone": "us-east-1g"}, {"AvailabilityZoneId": "use1-az7"}])
def test_a_subnet_needs_a_zone_of_the_account(zone, client, messages):
    with messages.raises(ClientError):
        client("ec2").create_subnet(VpcId="vpc-00000001", CidrBlock="172.31.240.0/24", **zone)


def test_the_first_zone_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv(FIRST_ZONE, OLD)
    with EmbeddedAws(tmp_path / "aws") as chosen, use_emulator(chosen):
        zones = boto3.client("ec2").describe_availability_zones()["AvailabilityZones"]
    assert (zones[0]["ZoneName"], zones[0]["ZoneId"]) == ("us-east-1a", OLD)
