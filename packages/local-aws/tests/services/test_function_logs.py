"""Where functions write their logs, and whether they may create the log group."""

import io
import json
import zipfile

import pytest

ASSUME = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
WRITE = ["logs:CreateLogStream", "logs:PutLogEvents"]


def allow(client, *actions: str) -> None:
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client("iam").put_role_policy(RoleName="silent", PolicyName="logs", PolicyDocument=document)


@pytest.fixture(scope="module")
def function(client) -> str:
    """A function with a log group, and a role that may do nothing."""
    role = client("iam").create_role(RoleName="silent", AssumeRolePolicyDocument=json.dumps(ASSUME))["Role"]["Arn"]
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("index.py", "def handler(event, context):\n    return 1\n")
    client("logs").create_log_group(logGroupName="lines")
    client("lambda").create_function(
        FunctionName="silent",
        Runtime="python3.14",
        Role=role,
        Handler="index.handler",
        Code={"ZipFile": body.getvalue()},
        LoggingConfig={"LogGroup": "lines"},
    )
    return "silent"


def groups(client) -> list[str]:
    return [group["logGroupName"] for group in client("logs").describe_log_groups()["logGroups"]]


def test_a_function_writes_into_its_log_group_where_its_role_may(function, client):
    streams = client("logs").describe_log_streams
    client("lambda").invoke(FunctionName=function)
    assert streams(logGroupName="lines")["logStreams"] == []
    allow(client, *WRITE)
    client("lambda").invoke(FunctionName=function)
    assert streams(logGroupName="lines")["logStreams"]
    assert groups(client) == ["lines"]


def test_a_log_group_that_is_gone_comes_back_only_if_the_role_may_create_it(function, client):
    client("logs").delete_log_group(logGroupName="lines")
    client("lambda").invoke(FunctionName=function)
    assert groups(client) == []
    allow(client, "logs:CreateLogGroup", *WRITE)
    client("lambda").invoke(FunctionName=function)
    assert groups(client) == ["lines"]
