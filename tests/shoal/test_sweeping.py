"""`shoal.sweep` for programs: by the example that the documents show, and what it deletes."""

import json
import runpy

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws

import shoal
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
def stack(aws: EmbeddedAws) -> str:
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_stack(StackName="Leaving", TemplateBody=json.dumps(TEMPLATE))
    cloudformation.get_waiter("stack_create_complete").wait(StackName="Leaving", WaiterConfig={"Delay": 1})
    return "Leaving"


def test_what_a_stack_left_is_listed_and_deleted_only_when_the_stack_is_gone(
    stack: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(shoal.ShoalError, match="1 stack of these exist: Leaving"):
        shoal.sweep(stack=stack, delete=True)
    boto3.client("cloudformation").delete_stack(StackName=stack)
    boto3.client("cloudformation").get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    found = shoal.sweep(stack=stack, session=boto3.Session())
    assert {each.kind: each.dollars_a_month for each in found} == {"secret": 0.40, "log group": 0.0}
    assert all(each.costs and each.is_certain for each in found)
    monkeypatch.setattr("sys.argv", ["what_is_left.py", "Leav", "None"])
    runpy.run_path(str(EXAMPLES / "what_is_left.py"), run_name="__main__")
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert last == "0.40 dollars a month"
    assert {each.outcome for each in shoal.sweep(stack=stack, delete=True)} == {"deleted"}
    assert shoal.sweep(stack=stack) == []
