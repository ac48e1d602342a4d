"""`left_of` for programs: the example of the documents, `python -m shoal_guard`, and deletion."""

import json
import runpy

import boto3
import pytest
from shoal_guard import SweepError, left_of
from shoal_guard.__main__ import main
from shoal_local_aws.faults.kinds import Denied

from infra import topology
from tests.shoal.outside import EXAMPLES

TEMPLATE = {
    "Resources": {
        "Kept": {"Type": "AWS::Logs::LogGroup", "DeletionPolicy": "Retain"},
        "Secret": {
            "Type": "AWS::SecretsManager::Secret",
            "DeletionPolicy": "Retain",
            "Properties": {"SecretString": "x"},
        },
    }
}


@pytest.fixture
def stack(aws) -> str:
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_stack(StackName="Leaving", TemplateBody=json.dumps(TEMPLATE))
    cloudformation.get_waiter("stack_create_complete").wait(StackName="Leaving", WaiterConfig={"Delay": 1})
    return "Leaving"


def test_leftovers_are_listed_and_deleted_only_after_their_stack(stack, monkeypatch, capsys):
    with pytest.raises(SweepError, match="matching stacks exist: Leaving"):
        left_of(stack, delete=True)
    boto3.client("cloudformation").delete_stack(StackName=stack)
    boto3.client("cloudformation").get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    found = left_of(stack, session=boto3.Session())
    assert {each.kind: each.dollars_a_month for each in found} == {"secret": 0.40, "log group": 0.0}
    assert all(each.costs and each.is_certain for each in found)
    monkeypatch.setattr("sys.argv", ["what_is_left.py", "Leav", "None"])
    runpy.run_path(str(EXAMPLES / "what_is_left.py"), run_name="__main__")
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert last == "0.40 dollars a month"
    assert main([stack]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert sorted(line.split("\t")[0] for line in lines) == ["log group", "secret"]
    assert last == "resources left: 2; the known part of their cost: $0.40 per month"
    assert {each.outcome for each in left_of(stack, delete=True)} == {"deleted"}
    assert left_of(stack) == []
    assert main([stack]) == 0


@pytest.mark.parametrize("keep", ["true", "unfetched"])
def test_a_bucket_with_the_tag_that_keeps_it_is_not_emptied(aws, keep):
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=f"precious-{keep}")
    tags = [{"Key": topology.TAG_KEEP, "Value": keep}, {"Key": "team", "Value": keep}]
    s3.put_bucket_tagging(Bucket=f"precious-{keep}", Tagging={"TagSet": tags})
    s3.put_object(Bucket=f"precious-{keep}", Key="data", Body=b"1")
    (kept,) = left_of(tag=f"team={keep}", delete=True)
    assert (kept.outcome, kept.reason.split("; ")[0]) == ("kept", f"its tag shoal:keep={keep} keeps it")
    with aws.faults.during(Denied(service="s3", operation="GetBucketTagging")):
        unknown = next(each for each in left_of(prefix=f"precious-{keep}", delete=True) if each.kind == "s3 bucket")
    assert (unknown.is_certain, unknown.outcome) == (False, "unknown")
    assert s3.get_object(Bucket=f"precious-{keep}", Key="data")["Body"].read() == b"1"


def test_an_invalid_stack_name_is_wrong_use(aws, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["5th"])
    assert capsys.readouterr().err.startswith("python -m shoal_guard: '5th' is not a stack name")


def test_expired_credentials_are_an_error_message(aws, monkeypatch, capsys):
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", "2020-01-01T00:00:00Z")
    with pytest.raises(SystemExit, match="2"):
        main(["WebShop"])
    assert "Error when retrieving credentials from AWS's configuration: " in capsys.readouterr().err
