"""Tests of the online preflight against the embedded AWS and its faults."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError
from shoal_local_aws.aws import REGION, EmbeddedAws
from shoal_local_aws.faults.kinds import Denied

from bootstrap.aws.account import Account
from bootstrap.lifecycle import preflight
from bootstrap.lifecycle.rules import PreflightContext
from bootstrap.lifecycle.rules.account import may_not_start, root_device_differs
from infra import topology
from tests.bootstrap.lifecycle.preflight import GPU, PRIMARY, findings, of, rules

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("preflight.yaml").read_text())


def test_a_topology_that_can_start_has_no_errors(asking: boto3.Session) -> None:
    wanted = of(
        preprocessing={"primary": PRIMARY, "core": {**PRIMARY, "count": 2}, "task": {**PRIMARY, "count": 2}},
        training=[GPU, {"instance_type": "g4dn.xlarge", "count": 1, "market": "spot"}],
        share="efs",
    )
    asked, found = preflight.online(wanted, asking, deployment="mine", owner="ada")
    assert asked == "account 000000000000, us-east-1"
    assert [(each.level, each.rule) for each in found] == [("warning", "not_prepared")]
    assert "`shoal deploy` first runs" in found[0].sentence


def asked(case: dict[str, Any], aws: EmbeddedAws, asking: boto3.Session) -> list[list[str]]:
    """Return the findings of a topology while AWS answers with the faults of a case."""
    with aws.faults.during(*(Denied(**fault) for fault in case["denied"])):
        return [list(each) for each in findings(asking, of(**case["topology"]))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_answers_of_aws_become_findings(case: dict[str, Any], aws: EmbeddedAws, asking: boto3.Session) -> None:
    assert asked(case, aws, asking) == case["found"]


def test_an_existing_bucket_must_exist_in_the_region(asking: boto3.Session) -> None:
    s3 = asking.client("s3")
    s3.create_bucket(Bucket="here")
    s3.create_bucket(Bucket="elsewhere", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})

    for bucket, fault in (("here", None), ("nowhere", "there is no bucket"), ("elsewhere", "is in eu-west-1")):
        found = findings(asking, of(training=[GPU], share="efs", data={"bucket": bucket}))
        assert [fault in sentence for *_, sentence in found if fault] == [True] * len(found) == [True] * bool(fault)


def test_buckets_of_inputs_must_exist_in_the_region(asking: boto3.Session) -> None:
    s3 = asking.client("s3")
    s3.create_bucket(Bucket="near")
    s3.create_bucket(Bucket="far", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    inputs = ["s3://near/2024/", "s3://absent/2024/", "s3://far"]
    found = findings(asking, of(training=[GPU], share="efs", inputs=inputs))
    assert [sentence.partition(":")[0] for *_, sentence in found] == ["inputs 2", "inputs 3"]


def test_permission_to_list_the_inputs_of_a_bucket_suffices(aws: EmbeddedAws, asking: boto3.Session) -> None:
    asking.client("s3").create_bucket(Bucket="guarded")
    wanted = of(training=[GPU], share="efs", inputs=["s3://guarded/2024/"])
    with aws.faults.during(Denied(service="s3", operation="HeadBucket")):
        assert findings(asking, wanted) == []
    with aws.faults.during(Denied(service="s3")):
        ((*_, sentence),) = findings(asking, wanted)
    assert "you are not allowed to list s3://guarded/2024/" in sentence


@pytest.mark.parametrize(
    ("action", "level"), [("ec2:RunInstances", "error"), ("ssm:GetParameters", "warning")], ids=["nodes", "image"]
)
def test_a_dry_run_that_is_refused_for_another_action_is_not_a_finding(
    asking: boto3.Session, monkeypatch: pytest.MonkeyPatch, action: str, level: str
) -> None:
    message = f"User: ada is not authorized to perform: {action} on resource: * because no policy allows it"
    refusal = ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": message}}, "RunInstances")
    client = Mock(run_instances=Mock(side_effect=refusal))
    monkeypatch.setattr(Account, "client", lambda *_: client)
    context = PreflightContext(topology=of(training=[GPU]), deployment="mine", owner="ada", account=Account(asking))
    (found,) = preflight._run("error", may_not_start, "Whether GPU nodes can be started", context)
    assert (found.level, action in found.sentence) == (level, True)


def test_each_group_that_ec2_refuses_is_an_error_even_if_a_later_answer_is_missing(
    asking: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = ["InvalidSubnetID.NotFound", "InvalidCapacityReservationId.NotFound", "RequestLimitExceeded"]
    refusals = [ClientError({"Error": {"Code": code, "Message": f"why: {code}"}}, "RunInstances") for code in codes]
    client = Mock(run_instances=Mock(side_effect=refusals))
    monkeypatch.setattr(Account, "client", lambda *_: client)
    wanted = of(training=[GPU, {**GPU, "name": "b"}, {**GPU, "name": "c"}])
    context = PreflightContext(topology=wanted, deployment="mine", owner="ada", account=Account(asking))
    found = preflight._run("error", may_not_start, "Whether GPU nodes can be started", context)
    assert [(each.level, code in each.sentence) for each, code in zip(found, codes, strict=True)] == [
        ("error", True),
        ("error", True),
        ("warning", True),
    ]
    assert found[0].sentence == "g5.xlarge (fast): EC2 refuses to start it: why: InvalidSubnetID.NotFound"


@pytest.mark.parametrize(("device", "said"), [("/dev/sda1", ["the root device /dev/sda1"]), ("/dev/xvda", [])])
def test_an_image_must_have_the_root_device_of_amazon_linux(
    asking: boto3.Session, monkeypatch: pytest.MonkeyPatch, device: str, said: list[str]
) -> None:
    answer = {"Images": [{"RootDeviceName": device}]}
    monkeypatch.setattr(Account, "client", lambda *_: Mock(describe_images=Mock(return_value=answer)))
    wanted = of(training=[GPU, {**GPU, "name": "own", "image": "ami-0a1b2c3d4e5f60718"}])
    context = PreflightContext(topology=wanted, deployment="mine", owner="ada", account=Account(asking))
    found = list(root_device_differs(context))
    assert [said[0] in sentence for sentence in found] == [True] * len(said)


def test_an_existing_network_must_reach_what_nodes_need(asking: boto3.Session, ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZone="us-east-1b")["Subnet"]["SubnetId"]
    wanted = of(
        preprocessing={"primary": PRIMARY},
        training=[GPU],
        share="efs",
        zone="us-east-1b",
        network={"vpc": vpc, "subnet": subnet, "shell": True},
    )
    without = wanted.model_copy(update={"network": wanted.network.model_copy(update={"shell": False})})
    assert [rule for _, rule, _ in findings(asking, without)] == ["subnet_unusable", "no_way_out"]
    found = findings(asking, wanted)
    assert [rule for _, rule, _ in found] == ["subnet_unusable"] + ["no_way_out"] * 3
    assert "--tags Key=for-use-with-amazon-emr-managed-policies,Value=true" in found[0][2]
    assert "do not reach S3" in found[1][2]
    assert f"aws ec2 create-vpc-endpoint --region us-east-1 --vpc-id {vpc}" in found[1][2]

    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3", RouteTableIds=[table])
    for service in ("ssm", "ssmmessages"):
        name = f"com.amazonaws.us-east-1.{service}"
        ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=name, VpcEndpointType="Interface", SubnetIds=[subnet])
    (group,) = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["SecurityGroups"]
    https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.9.0.0/16"}]}
    ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[https])
    ec2.create_tags(Resources=[subnet], Tags=[{"Key": "for-use-with-amazon-emr-managed-policies", "Value": "true"}])
    assert findings(asking, wanted) == []


def test_a_route_through_nat_is_a_way_out(asking: boto3.Session, ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.8.1.0/24", AvailabilityZone="us-east-1b")["Subnet"]["SubnetId"]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId="nat-0123456789abcdef0")
    wanted = of(training=[GPU], share="efs", zone="us-east-1b", network={"vpc": vpc, "subnet": subnet})
    assert findings(asking, wanted) == []


def test_a_subnet_must_exist_in_the_vpc_and_zone_of_the_topology(asking: boto3.Session, ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.1.0/24", AvailabilityZone="us-east-1b")["Subnet"]["SubnetId"]
    elsewhere = {"zone": "us-east-1c", "network": {"vpc": "vpc-0badbad1", "subnet": subnet}}
    found = findings(asking, of(training=[GPU], share="efs", **elsewhere))
    assert [sentence for _, rule, sentence in found if rule == "subnet_unusable"] == [
        f"network, vpc: {subnet} is in {vpc}, not in vpc-0badbad1; write {vpc}.",
        f"zone: {subnet} is in us-east-1b, not in us-east-1c; write us-east-1b.",
    ]
    absent = {"zone": "us-east-1b", "network": {"vpc": vpc, "subnet": "subnet-0badbadbad"}}
    found = findings(asking, of(training=[GPU], share="efs", **absent))
    assert [sentence for _, rule, sentence in found if rule == "subnet_unusable"] == [
        "network, subnet: subnet-0badbadbad does not exist in us-east-1 for your credentials; write a subnet that "
        "`aws ec2 describe-subnets --region us-east-1` lists."
    ]


def test_a_name_is_taken_only_by_another_owner(asking: boto3.Session) -> None:
    cloudformation = asking.client("cloudformation")
    cloudformation.create_stack(
        StackName="Shoal-mine",
        TemplateBody='{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}',
        Tags=[{"Key": topology.TAG_OWNER, "Value": "ada"}, {"Key": topology.TAG_TOPOLOGY, "Value": "mine"}],
    )
    cloudformation.get_waiter("stack_create_complete").wait(StackName="Shoal-mine", WaiterConfig={"Delay": 1})
    wanted = of(training=[GPU], share="efs")
    try:
        assert findings(asking, wanted) == []
        assert rules(findings(asking, wanted, owner="bob")) == [("error", "name_taken")]
    finally:
        cloudformation.delete_stack(StackName="Shoal-mine")
        cloudformation.get_waiter("stack_delete_complete").wait(StackName="Shoal-mine", WaiterConfig={"Delay": 1})


def test_without_credentials_or_network_no_rule_runs(asking: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = of(training=[GPU], share="efs")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    asked, found = preflight.online(wanted, preflight.session(REGION), deployment="mine", owner="ada")
    assert asked.startswith("could not be checked (Could not connect")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    assert preflight.online(wanted, preflight.session(REGION), deployment="mine", owner="ada") == (
        "not checked, because there are no credentials",
        [],
    )
    assert found == []
