"""Zones that are chosen for a deployment in an account in which us-east-1a is use1-az3."""

from collections.abc import Iterator

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import NotOffered
from shoal_local_aws.faults.zones import FIRST_ZONE
from tests.local_aws.accounts import running_aws

from common import names
from common.errors import ShoalError
from shoal.aws import zones
from shoal.aws.account import Account
from tests.shoal.deployments.preflight import TRAINING, topology_of

PAIR = topology_of(**TRAINING)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FIRST_ZONE, "use1-az3")
        with running_aws(tmp_path_factory.mktemp("aws")) as running:
            yield running


@pytest.fixture
def account(aws) -> Account:
    return Account(boto3.Session())


def test_a_new_deployment_is_in_the_first_zones_that_offer_all_types(account, aws) -> None:
    assert zones.choose(account, PAIR, "mine") == ["use1-az1", "use1-az2", "use1-az4"]
    newer = topology_of(training=[{"instance_type": "p6-b200.48xlarge", "count": 1}])
    assert zones.choose(account, newer, "mine") == ["use1-az6"]
    with aws.faults.during(NotOffered(instance_type="g5.xlarge", zone="us-east-1d")):
        assert zones.choose(account, PAIR, "mine") == ["use1-az1", "use1-az4", "use1-az5"]


def test_no_zone_is_chosen_for_a_topology_without_nodes_or_with_a_zone(account) -> None:
    managed = topology_of(managed={"instance_type": "ml.g5.xlarge", "count": 1, "max_hours": 6})
    assert zones.choose(account, managed, "mine") == []
    assert zones.choose(account, topology_of(zone="us-east-1b", **TRAINING), "mine") == []


def test_a_deployment_keeps_its_zones(account, aws, messages) -> None:
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    tags = {names.TAG_DEPLOYMENT: "old", names.TAG_NODES: "true"}
    for block, zone in (("10.0.16.0/20", "use1-az3"), ("10.0.0.0/20", "use1-az5"), ("10.0.128.0/20", "use1-az2")):
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZoneId=zone)["Subnet"]["SubnetId"]
        ec2.create_tags(Resources=[subnet], Tags=[{"Key": key, "Value": value} for key, value in tags.items()])
    assert zones.choose(account, PAIR, "old") == ["use1-az5", "use1-az3", "use1-az2"]
    with aws.faults.during(NotOffered(instance_type="g5.xlarge", zone="us-east-1f")), messages.raises(ShoalError):
        zones.choose(account, PAIR, "old")
