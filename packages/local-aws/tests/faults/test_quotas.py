"""Quotas of a new account, and requests for higher quotas."""

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import QuotaLimit
from shoal_local_aws.faults.quotas import vcpus
from tests.local_aws.scaling import Group
from tests.local_aws.waiting import until

G_ON_DEMAND, G_SPOT = "L-DB2E81BA", "L-3819A6DF"


def values(client):
    quotas = client("service-quotas").list_service_quotas(ServiceCode="ec2")["Quotas"]
    return {each["QuotaCode"]: each["Value"] for each in quotas}


def increase(client, value, code=G_ON_DEMAND):
    named = {"ServiceCode": "ec2", "QuotaCode": code}
    return client("service-quotas").request_service_quota_increase(**named, DesiredValue=value)["RequestedQuota"]


@pytest.mark.parametrize("spot", [None, {"OnDemandPercentageAboveBaseCapacity": 0}], ids=["on-demand", "spot"])
def test_a_group_waits_for_a_higher_quota(spot, aws, client, messages):
    group = Group(aws, client, f"limited-{spot is None}", spot=spot, types=("g5.xlarge",))
    group.scale(1)
    (activity,) = client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group.name)["Activities"]
    assert activity["StatusCode"] == "Failed"
    messages.check(activity["StatusMessage"])
    with aws.faults.during(QuotaLimit(code=G_SPOT if spot else G_ON_DEMAND, value=4)):
        group.scale(1)
        assert len(group.serving(1)) == 1
    group.scale(0)
    until(lambda: group.serving(0) == [])


def test_a_request_for_a_higher_quota_is_approved_in_its_region(client, aws, messages):
    assert increase(client, 8)["Status"] == "APPROVED"
    assert values(client)[G_ON_DEMAND] == 8
    there = boto3.client("service-quotas", region_name="eu-west-1")
    assert there.get_service_quota(ServiceCode="ec2", QuotaCode=G_ON_DEMAND)["Quota"]["Value"] == 0
    with messages.raises(ClientError):
        increase(client, 8)
    with messages.raises(ClientError):
        increase(client, 8, code="L-00000000")
    with aws.faults.during(QuotaLimit(code=G_ON_DEMAND, value=4)):
        assert values(client)[G_ON_DEMAND] == 4


@pytest.mark.parametrize(
    ("kind", "number"),
    [("c6g.large", 2), ("g4dn.xlarge", 4), ("p2.16xlarge", 64), ("g5.48xlarge", 192), ("g4dn.metal", 96)],
)
def test_the_size_of_a_type_is_its_number_of_vcpus(kind, number):
    assert vcpus(kind) == number
