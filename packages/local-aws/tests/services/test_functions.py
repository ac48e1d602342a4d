"""Lambda functions of a stack: calls by a client, calls by a schedule, and the deletion of the function's own stack."""

import json
from typing import Any

import pytest
from shoal_local_aws.aws import ACCOUNT
from tests.local_aws.resources import ROLE
from tests.local_aws.waiting import until

CODE = """
import boto3, json, os

def handler(event, context):
    if event.get("delete"):
        boto3.client("cloudformation").delete_stack(StackName=event["delete"])
    body = json.dumps({"event": event, "bucket": os.environ["BUCKET"], "region": os.environ["AWS_REGION"]})
    boto3.client("s3").put_object(Bucket=os.environ["BUCKET"], Key="seen", Body=body)
    return json.loads(body)
"""
RESOURCES: dict[str, Any] = {
    "Role": ROLE,
    "Log": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 14}},
    "Function": {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Runtime": "python3.14",
            "Handler": "index.handler",
            "Timeout": 60,
            "Code": {"ZipFile": CODE},
            "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            "Environment": {"Variables": {"BUCKET": "functions"}},
            "LoggingConfig": {"LogGroup": {"Ref": "Log"}},
        },
    },
    "Rule": {
        "Type": "AWS::Events::Rule",
        "Properties": {
            "ScheduleExpression": "rate(5 minutes)",
            "State": "ENABLED",
            "Targets": [{"Id": "Target0", "Arn": {"Fn::GetAtt": ["Function", "Arn"]}}],
        },
    },
    "Permission": {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "Action": "lambda:InvokeFunction",
            "FunctionName": {"Fn::GetAtt": ["Function", "Arn"]},
            "Principal": "events.amazonaws.com",
            "SourceArn": {"Fn::GetAtt": ["Rule", "Arn"]},
        },
    },
}


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

    def gone() -> bool:
        stack = client("cloudformation").describe_stacks(StackName=identifier)["Stacks"][0]
        assert stack["StackStatus"] != "DELETE_FAILED"
        return bool(stack["StackStatus"] == "DELETE_COMPLETE")

    until(gone)
    assert client("lambda").list_functions()["Functions"] == []
    assert [rule for rule in client("events").list_rules()["Rules"] if "ScheduleExpression" in rule] == []
