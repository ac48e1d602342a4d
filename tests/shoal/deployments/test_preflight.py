"""Tests of the online preflight and its rules against the embedded AWS and its faults."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from shoal_local_aws.aws import REGION
from shoal_local_aws.faults.kinds import Denied, FreePlan, NotOffered, QuotaLimit, StaysPending, VolumeKey

from common import names
from shoal.deployments import preflight
from tests.shoal.deployments.preflight import GPU, PRIMARY, TRAINING, topology_of

TOO_LOW = [("error", "quota_too_low")]
UNUSABLE = [("error", "key_unusable")]
SCALING = "arn:aws:iam::000000000000:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"


@pytest.fixture(scope="module")
def session(aws) -> boto3.Session:
    return preflight.session(REGION)


@pytest.fixture(scope="module")
def ec2(session) -> Any:
    return session.client("ec2")


@pytest.fixture
def findings(session, messages) -> Callable[..., list[tuple[str, str]]]:
    """Function that returns level and rule of each finding of a topology, and compares each sentence.

    `only`: the rule of the findings that count; others are left out.
    """

    def find(*, only: str = "", **fields: Any) -> list[tuple[str, str]]:
        _, every = preflight.online(topology_of(**fields), session, deployment="mine")
        chosen = [each for each in every if (each.rule == only if only else each.rule != "not_prepared")]
        for each in chosen:
            messages.check(each.sentence)
        return [(each.level, each.rule) for each in chosen]

    return find


@pytest.fixture
def network(ec2, messages) -> dict[str, str]:
    """A VPC, and a subnet without a route."""
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZone="us-east-1b")["Subnet"]["SubnetId"]
    (table,) = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
    messages.hide(table["RouteTableId"], "TABLE")
    messages.hide(vpc, "VPC")
    messages.hide(subnet, "SUBNET")
    return {"vpc": vpc, "subnet": subnet}


def test_a_topology_that_can_start_has_no_errors(session, messages) -> None:
    wanted = topology_of(
        preprocessing={"primary": PRIMARY, "core": {**PRIMARY, "count": 2}, "task": {**PRIMARY, "count": 2}},
        training=[GPU, {"instance_type": "g4dn.xlarge", "count": 1, "market": "spot"}],
        share="efs",
    )
    account, (finding,) = preflight.online(wanted, session, deployment="mine")
    assert account == "account 000000000000, us-east-1"
    assert (finding.level, finding.rule) == ("warning", "not_prepared")
    messages.check(finding.sentence)


@pytest.mark.parametrize(
    ("zone", "fault"),
    [
        ("us-east-1e", NotOffered(instance_type="m5.xlarge", zone="us-east-1b")),
        ("us-east-1g", NotOffered(instance_type="m5.xlarge", zone="us-east-1b")),
        ("us-east-1b", NotOffered(instance_type="g5.xlarge")),
        (None, NotOffered(instance_type="g5.xlarge")),
    ],
    ids=["lacking", "unknown", "lacking as all others", "no zone"],
)
def test_a_zone_must_offer_all_types(zone, fault, aws, findings) -> None:
    with aws.faults.during(fault):
        results = findings(only="type_not_in_zone", zone=zone, preprocessing={"primary": PRIMARY}, **TRAINING)
    assert results == [("error", "type_not_in_zone")]


@pytest.fixture(scope="module")
def buckets(session) -> None:
    """The bucket `near`, and the bucket `far` in another region."""
    s3 = session.client("s3")
    s3.create_bucket(Bucket="near")
    s3.create_bucket(Bucket="far", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})


@pytest.mark.parametrize(("bucket", "refused"), [("near", False), ("absent", True), ("far", True)])
def test_an_existing_bucket_must_exist_in_the_region(bucket, refused, buckets, findings) -> None:
    assert [level for level, _ in findings(data={"bucket": bucket}, **TRAINING)] == ["error"] * refused


def test_buckets_of_inputs_must_exist_in_the_region(buckets, findings, messages) -> None:
    findings(inputs=["s3://near/2024/", "s3://absent/2024/", "s3://far"], **TRAINING)
    assert [str(sentence).partition(":")[0] for sentence in messages.seen] == ["inputs 2", "inputs 3"]


def test_a_bucket_that_refuses_is_an_error_only_as_the_data_bucket(aws, buckets, findings) -> None:
    with aws.faults.during(Denied(service="s3", operation="HeadBucket")):
        assert findings(inputs=["s3://near/2024/"], **TRAINING) == [("warning", "bucket_unusable")]
        assert findings(data={"bucket": "near"}, **TRAINING) == [("error", "bucket_unusable")]


def test_without_credentials_or_network_no_rule_runs(monkeypatch) -> None:
    def run() -> tuple[str, list[object]]:
        return preflight.online(topology_of(**TRAINING), preflight.session(REGION), deployment="mine")

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    account, results = run()
    assert (account.startswith("could not be checked (Could not connect"), results) == (True, [])
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    assert run() == ("not checked, because there are no credentials", [])


@pytest.mark.parametrize(
    ("fault", "level", "rule"),
    [
        (FreePlan(), "error", "free_plan"),
        (Denied(service="freetier"), "warning", "free_plan"),
        (Denied(service="servicequotas"), "warning", "quota_too_low"),
    ],
    ids=["free plan", "unknown plan", "unknown quotas"],
)
def test_a_restricted_account_is_a_finding(fault, level, rule, aws, findings) -> None:
    parts = {"preprocessing": {"primary": PRIMARY}} if isinstance(fault, FreePlan) else {}
    with aws.faults.during(fault):
        assert findings(**parts, **TRAINING) == [(level, rule)]


def start(ec2: Any, deployment: str) -> str:
    """Start an instance of a deployment; return its id."""
    tags = [{"Key": names.TAG_DEPLOYMENT, "Value": deployment}]
    started = ec2.run_instances(
        ImageId="ami-12345678",
        InstanceType="g5.xlarge",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    return str(started["Instances"][0]["InstanceId"])


def test_a_quota_counts_the_whole_topology(aws, findings) -> None:
    groups = [GPU, {"instance_type": "g4dn.xlarge", "count": 1}]
    with aws.faults.during(QuotaLimit(code="L-DB2E81BA", value=8)):
        assert findings(training=groups, share="efs") == TOO_LOW


def test_only_instances_of_other_deployments_are_subtracted_from_a_quota(aws, ec2, findings) -> None:
    instances = [start(ec2, "mine"), start(ec2, "theirs")]
    with aws.faults.during(QuotaLimit(code="L-DB2E81BA", value=11)):
        assert findings(**TRAINING) == TOO_LOW
    ec2.terminate_instances(InstanceIds=instances)


def test_starting_instances_count_against_a_quota(aws, ec2, findings) -> None:
    with aws.faults.during(StaysPending(), QuotaLimit(code="L-DB2E81BA", value=11)):
        instance = start(ec2, "theirs")
        assert findings(**TRAINING) == TOO_LOW
        ec2.terminate_instances(InstanceIds=[instance])


def test_spot_has_a_separate_quota(aws, findings) -> None:
    with aws.faults.during(QuotaLimit(code="L-3819A6DF", value=0)):
        assert findings(**TRAINING) == []
        assert findings(training=[{**GPU, "market": "spot"}], share="efs") == TOO_LOW


@pytest.fixture
def kms(session) -> Any:
    return session.client("kms")


@pytest.fixture
def key(kms, messages) -> Iterator[str]:
    arn = kms.create_key()["KeyMetadata"]["Arn"]
    messages.hide(arn, "KEY")
    yield arn
    kms.schedule_key_deletion(KeyId=arn, PendingWindowInDays=7)


@pytest.fixture(scope="module", autouse=True)
def scaling_role(session) -> None:
    """The role of Auto Scaling, which a new account does not have. The preflight prints the command that creates it."""
    session.client("iam").create_service_linked_role(AWSServiceName="autoscaling.amazonaws.com")


def allow(kms: Any, key: str, principal: Any, actions: Any) -> None:
    """Allow the principal to use the key, in addition to the account's principals."""
    own = {"AWS": "arn:aws:iam::000000000000:root"}
    statements = [
        {"Effect": "Allow", "Principal": each, "Action": allowed, "Resource": "*"}
        for each, allowed in ((own, "kms:*"), (principal, actions))
    ]
    kms.put_key_policy(KeyId=key, Policy=json.dumps({"Version": "2012-10-17", "Statement": statements}))


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (lambda *_: None, UNUSABLE),
        (lambda kms, key: kms.disable_key(KeyId=key), UNUSABLE),
        (lambda kms, key: allow(kms, key, {"AWS": [SCALING]}, ["kms:Decrypt", "kms:CreateGrant"]), []),
        (lambda kms, key: allow(kms, key, {"AWS": "*"}, "kms:*"), []),
        (lambda kms, key: allow(kms, key, "*", "kms:createGrant"), []),
        (lambda kms, key: kms.create_grant(KeyId=key, GranteePrincipal=SCALING, Operations=["CreateGrant"]), []),
    ],
    ids=["not allowed", "disabled", "policy", "policy for the account", "policy for all", "grant"],
)
def test_the_key_of_the_account_must_work_for_auto_scaling(prepare, expected, aws, kms, key, findings) -> None:
    prepare(kms, key)
    with aws.faults.during(VolumeKey(key=key)):
        assert findings(**TRAINING) == expected


def test_an_unreadable_key_is_a_warning_with_the_required_permissions(aws, key, findings) -> None:
    with aws.faults.during(VolumeKey(key=key), Denied(service="kms")):
        assert findings(**TRAINING) == [("warning", "key_unusable")]


def test_the_key_of_a_topology_must_exist_encrypt_and_allow_auto_scaling(kms, key, findings, messages) -> None:
    assert findings(kms_key=key.rpartition("/")[0] + "/00000000-0000-0000-0000-000000000000", **TRAINING) == UNUSABLE
    assert findings(kms_key=key, **TRAINING) == UNUSABLE
    allow(kms, key, {"AWS": [SCALING]}, "kms:*")
    assert findings(kms_key=key, **TRAINING) == []
    signing = kms.create_key(KeyUsage="SIGN_VERIFY", KeySpec="RSA_2048")["KeyMetadata"]["Arn"]
    messages.hide(signing, "SIGNING")
    assert findings(kms_key=signing, **TRAINING) == UNUSABLE


def test_an_existing_network_must_reach_s3(ec2, network, findings) -> None:
    wanted = {"network": network, "zone": "us-east-1b", **TRAINING}
    assert findings(**wanted) == [("error", "no_way_out")]
    table = ec2.create_route_table(VpcId=network["vpc"])["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=network["subnet"])
    ec2.create_vpc_endpoint(VpcId=network["vpc"], ServiceName="com.amazonaws.us-east-1.s3", RouteTableIds=[table])
    assert findings(**wanted) == []


def test_a_route_through_nat_is_a_way_out(ec2, network, findings) -> None:
    table = ec2.create_route_table(VpcId=network["vpc"])["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=network["subnet"])
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId="nat-0123456789abcdef0")
    assert findings(zone="us-east-1b", network=network, **TRAINING) == []
