import json
from pathlib import Path

import pytest
import yaml
from shoal_local_aws.aws import ACCOUNT
from tests.local_aws.waiting import until

RESOURCES = yaml.safe_load(Path(__file__).with_name("functions.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def function(client, stacks):
    client("s3").create_bucket(Bucket="functions")
    execution = f"arn:aws:iam::{ACCOUNT}:role/execution"
    assert stacks.create("functions", RESOURCES, RoleARN=execution) == "CREATE_COMPLETE", stacks.reasons("functions")
    return stacks.physical("functions", "Function")


def test_a_function_gets_its_event_its_environment_and_a_way_to_the_services(function, client):
    payload = json.dumps({"time": "2030-01-01T00:00:00Z"})
    answer = client("lambda").invoke(FunctionName=function, Payload=payload)
    assert "FunctionError" not in answer
    seen = json.load(answer["Payload"])
    assert seen == {"event": {"time": "2030-01-01T00:00:00Z"}, "bucket": "functions", "region": "us-east-1"}
    assert json.load(client("s3").get_object(Bucket="functions", Key="seen")["Body"]) == seen


def test_a_scheduled_function_deletes_its_own_stack(function, client):
    events = client("events")
    (rule,) = (each for each in events.list_rules()["Rules"] if each.get("ScheduleExpression") == "rate(5 minutes)")
    (target,) = events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
    assert target["Arn"].endswith(function)
    identifier = client("cloudformation").describe_stacks(StackName="functions")["Stacks"][0]["StackId"]
    client("lambda").invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps({"delete": "functions"}))

    def gone():
        stack = client("cloudformation").describe_stacks(StackName=identifier)["Stacks"][0]
        assert stack["StackStatus"] != "DELETE_FAILED"
        return bool(stack["StackStatus"] == "DELETE_COMPLETE")

    until(gone)
    assert client("lambda").list_functions()["Functions"] == []
    assert [rule for rule in client("events").list_rules()["Rules"] if "ScheduleExpression" in rule] == []
