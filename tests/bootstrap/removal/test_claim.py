"""What other programs' stacks leave is found, priced and deleted; nothing of a neighbour is named."""

import json
from typing import Any

import boto3
import pytest

from bootstrap.aws.account import Account
from bootstrap.cli.main import main
from bootstrap.removal.claim import Claim
from bootstrap.removal.kinds import ALL_KINDS
from bootstrap.removal.monthly import price_of
from bootstrap.removal.sweep import FoundResource, find_owned
from common.errors import UsageError
from embedded.aws import EmbeddedAws
from embedded.faults.kinds import Denied

RETAIN, SNAPSHOT = {"DeletionPolicy": "Retain"}, {"DeletionPolicy": "Snapshot"}
DATABASE = {
    "Engine": "postgres",
    "DBInstanceClass": "db.t3.micro",
    "AllocatedStorage": "20",
    "MasterUsername": "master",
    "MasterUserPassword": "not-a-secret",
}
STACKS: dict[str, dict[str, Any]] = {
    "web": {
        "Log": {"Type": "AWS::Logs::LogGroup", **RETAIN},
        "Uploads": {
            "Type": "AWS::S3::Bucket",
            **RETAIN,
            "Properties": {"VersioningConfiguration": {"Status": "Enabled"}},
        },
        "Address": {"Type": "AWS::EC2::EIP", "Properties": {"Domain": "vpc"}, **RETAIN},
        "Gone": {"Type": "AWS::SNS::Topic"},
    },
    "shop": {
        "Orders": {"Type": "AWS::RDS::DBInstance", **RETAIN, "Properties": DATABASE},
        "Carts": {"Type": "AWS::RDS::DBInstance", **SNAPSHOT, "Properties": DATABASE},
        "Gone": {"Type": "AWS::SQS::Queue"},
    },
    "data": {
        "Disk": {
            "Type": "AWS::EC2::Volume",
            **RETAIN,
            "Properties": {"Size": 8, "VolumeType": "gp2", "AvailabilityZone": "us-east-1a"},
        },
        "Archive": {
            "Type": "AWS::EC2::Volume",
            "Properties": {"Size": 50, "VolumeType": "gp2", "AvailabilityZone": "us-east-1a"},
        },
        "Table": {
            "Type": "AWS::DynamoDB::Table",
            **RETAIN,
            "Properties": {
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            },
        },
    },
    "net": {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.9.0.0/16"}, **RETAIN},
        "Subnet": {
            "Type": "AWS::EC2::Subnet",
            **RETAIN,
            "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.9.0.0/24"},
        },
        "Interface": {
            "Type": "AWS::EC2::NetworkInterface",
            **RETAIN,
            "Properties": {"SubnetId": {"Ref": "Subnet"}},
        },
    },
    "edge": {
        "Secret": {"Type": "AWS::SecretsManager::Secret", "Properties": {"SecretString": "x"}, **RETAIN},
        "Images": {"Type": "AWS::ECR::Repository", **RETAIN},
        "Alarm": {
            "Type": "AWS::CloudWatch::Alarm",
            **RETAIN,
            "Properties": {
                "MetricName": "x",
                "Namespace": "x",
                "ComparisonOperator": "GreaterThanThreshold",
                "EvaluationPeriods": 1,
                "Period": 60,
                "Statistic": "Sum",
                "Threshold": 1,
            },
        },
    },
}
COMES_WITH_A_VPC = ("security group", "network acl", "route table")
EXPECTED = {
    "web": {"log group", "s3 bucket", "elastic ip"},
    "shop": {"rds instance", "rds snapshot"},
    "data": {"volume", "snapshot", "dynamodb table"},
    "net": {"vpc", "subnet", "network interface"},
    "edge": {"secret", "ecr repository", "cloudwatch alarm"},
}


@pytest.fixture(scope="module")
def account(aws: EmbeddedAws) -> Account:
    return Account()


@pytest.fixture(scope="module")
def left(account: Account) -> dict[str, set[tuple[str, str]]]:
    """What each of the five stacks left; beside each one stands a neighbour, whose name begins with the same."""
    left: dict[str, set[tuple[str, str]]] = {}
    before = exist(account)
    for name, resources in STACKS.items():
        create(f"{name}-2", resources)
        beside = exist(account)
        create(name, resources)
        if name == "web":
            (bucket,) = (identifier for kind, identifier in exist(account) - beside if kind == "s3 bucket")
            for body in (b"one", b"two"):
                boto3.client("s3").put_object(Bucket=bucket, Key="photo", Body=body)
        if name == "data":  # somebody's backup, without a tag
            (archive,) = (
                identifier
                for kind, identifier in exist(account) - beside
                if kind == "volume" and size(identifier) == 50
            )
            boto3.client("ec2").create_snapshot(VolumeId=archive)
        boto3.client("cloudformation").delete_stack(StackName=name)
        boto3.client("cloudformation").get_waiter("stack_delete_complete").wait(
            StackName=name, WaiterConfig={"Delay": 1}
        )
        left[name] = {each for each in exist(account) - beside if each[0] not in COMES_WITH_A_VPC}
    assert before < exist(account)
    return left


def create(name: str, resources: dict[str, Any]) -> None:
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


def size(volume: str) -> int:
    (found,) = boto3.client("ec2").describe_volumes(VolumeIds=[volume])["Volumes"]
    return found["Size"]


def exist(account: Account) -> set[tuple[str, str]]:
    """Everything that is listed, but stacks."""
    kinds = {name: kind for name, kind in ALL_KINDS.items() if name != "cloudformation stack"}
    return {(name, identifier) for name, kind in kinds.items() for identifier, _ in kind.things(account)}


def found(claim: Claim) -> list[FoundResource]:
    return find_owned(claim, ALL_KINDS)


def test_a_stacks_leftovers_are_found_and_nothing_of_its_neighbour(
    account: Account, left: dict[str, set[tuple[str, str]]]
) -> None:
    for name, expected in left.items():
        assert {kind for kind, _ in expected} >= EXPECTED[name], name
        assert {thing.key for thing in found(Claim(account, stack=name))} == expected, name


def test_a_prefix_finds_both_and_a_tag_what_has_it(account: Account, left: dict[str, set[tuple[str, str]]]) -> None:
    web = {thing.key for thing in found(Claim(account, prefix="web"))}
    assert left["web"] < web
    assert {("cloudformation stack", "web-2")} < web
    assert not web & set.union(*(left[name] for name in left if name != "web"))
    by_tag = {thing.key for thing in found(Claim(account, tag="aws:cloudformation:stack-name=web"))}
    assert by_tag <= left["web"]
    assert ("log group", next(name for kind, name in left["web"] if kind == "log group")) in by_tag
    assert {thing.key for thing in found(Claim(account, tag="aws:cloudformation:stack-name"))} > by_tag
    assert found(Claim(account, tag="aws:cloudformation:stack-name=we")) == []


def test_what_can_be_priced_is(account: Account, left: dict[str, set[tuple[str, str]]]) -> None:
    priced = {}
    for name in left:
        for thing in found(Claim(account, stack=name)):
            price = price_of(account, thing)
            priced[thing.kind] = (price.dollars, price.bound)
    assert priced["elastic ip"] == (pytest.approx(3.65), "")
    assert priced["volume"] == (pytest.approx(0.80), "")
    assert priced["snapshot"] == (pytest.approx(2.50), "at most")
    assert priced["rds instance"] == (pytest.approx(2.30), "at least")
    assert priced["secret"] == (pytest.approx(0.40), "")
    assert priced["cloudwatch alarm"] == (pytest.approx(0.10), "")
    assert priced["vpc"] == (0.0, "")
    bucket, _bound = priced["s3 bucket"]
    assert bucket == pytest.approx(0.023 * 6 / 2**30)  # both versions of the photo


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({}, "one of --stack NAME, --tag KEY=VALUE and --prefix PREFIX"),
        ({"stack": "a", "prefix": "a"}, "one of --stack NAME"),
        ({"stack": "a b"}, "'a b' is no name of a stack"),
        ({"tag": "=x"}, "'=x' is no tag"),
        ({"tag": "k" * 129}, "is no tag"),
    ],
)
def test_a_claim_that_names_nothing_is_refused(account: Account, claim: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Claim(account, **claim)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("web-Log-AB12CD34EF56", True),
        ("web-uploads-3kx81xyz9abc", True),
        ("web-snapshot-orders-3kx81xyz9abc", True),
        ("web-2-Log-AB12CD34EF56", False),
        ("web-api-production", False),
        ("web-api", False),
        ("webs-Log-AB12CD34EF56", False),
        ("my-web-Log-AB12CD34EF56", False),
    ],
)
def test_names_that_cloudformation_gives_are_told_from_others(account: Account, name: str, given: bool) -> None:
    claim = Claim(account, stack="web")
    assert claim.owns_by_name("AWS::S3::Bucket", name, {}) is given


def test_what_does_not_answer_is_named_and_nothing_is_called_clean(
    aws: EmbeddedAws, capfd: pytest.CaptureFixture[str]
) -> None:
    with aws.faults.during(Denied(service="rds", operation="DescribeDBInstances")):
        assert main(["sweep", "--stack", "never-there"]) == 1
    printed = " ".join(capfd.readouterr().out.split())
    assert "rds instance (all)" in printed
    assert "1 answer missing, so it is unknown whether more is left" in printed


def test_the_command_lists_asks_and_deletes(
    account: Account, left: dict[str, set[tuple[str, str]]], capfd: pytest.CaptureFixture[str]
) -> None:
    beside = exist(account)
    assert main(["sweep", "--stack", "web"]) == 1
    printed = capfd.readouterr().out
    assert all(identifier in printed for _kind, identifier in left["web"])
    assert "known to cost $3.65 a month" in " ".join(printed.split())
    assert exist(account) == beside
    assert main(["sweep", "--stack", "web", "--delete"]) == 2
    assert "there is no terminal to ask on" in capfd.readouterr().err
    assert exist(account) == beside
    assert main(["sweep", "--stack", "web", "--delete", "--yes"]) == 0
    assert "3 resources deleted, and nothing that costs money is left" in " ".join(capfd.readouterr().out.split())
    assert beside - exist(account) == left["web"]
    assert main(["sweep", "--stack", "web", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["things"] == []


def test_a_stack_that_exists_is_not_taken_apart(
    account: Account, left: object, capfd: pytest.CaptureFixture[str]
) -> None:
    beside = exist(account)
    assert main(["sweep", "--stack", "edge-2", "--delete", "--yes"]) == 2
    assert "nothing was deleted, because 1 stack of these exist: edge-2" in " ".join(capfd.readouterr().err.split())
    assert exist(account) == beside


def test_databases_snapshots_and_a_network_are_deleted(
    account: Account, left: dict[str, set[tuple[str, str]]], capfd: pytest.CaptureFixture[str]
) -> None:
    beside = exist(account)
    for name in ("shop", "data", "net", "edge"):
        assert main(["sweep", "--stack", name, "--delete", "--yes"]) == 0, capfd.readouterr().out
        assert left[name] <= beside - exist(account), name
    gone = {each for each in beside - exist(account) if each[0] not in COMES_WITH_A_VPC}
    assert gone == set.union(*(left[name] for name in left if name != "web"))
