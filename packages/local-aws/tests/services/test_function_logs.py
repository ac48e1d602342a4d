import io
import json
import zipfile

import pytest

ASSUME = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
WRITE = ["logs:CreateLogStream", "logs:PutLogEvents"]


def allow(client, *actions):
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client("iam").put_role_policy(RoleName="silent", PolicyName="logs", PolicyDocument=document)


@pytest.fixture(scope="module")
def function(client):
    """Lambda function with a log group, and with a role without permissions."""
    role = client("iam").create_role(RoleName="silent", AssumeRolePolicyDocument=json.dumps(ASSUME))["Role"]["Arn"]
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("index.py", "def handler(event, context):\n    return 1\n")
    client("logs").create_log_group(logGroupName="lines")
    code = {"Runtime": "python3.14", "Handler": "index.handler", "Code": {"ZipFile": body.getvalue()}}
    logging = {"LogGroup": "lines"}
    client("lambda").create_function(FunctionName="silent", Role=role, **code, LoggingConfig=logging)
    return "silent"


def groups(client):
    return [group["logGroupName"] for group in client("logs").describe_log_groups()["logGroups"]]


def test_a_function_writes_logs_only_with_permission(function, client):
    streams = client("logs").describe_log_streams
    client("lambda").invoke(FunctionName=function)
    assert streams(logGroupName="lines")["logStreams"] == []
    allow(client, *WRITE)
    client("lambda").invoke(FunctionName=function)
    assert streams(logGroupName="lines")["logStreams"]
    assert groups(client) == ["lines"]


def test_a_deleted_log_group_is_created_again_only_with_permission(function, client):
    client("logs").delete_log_group(logGroupName="lines")
    client("lambda").invoke(FunctionName=function)
    assert groups(client) == []
    allow(client, "logs:CreateLogGroup", *WRITE)
    client("lambda").invoke(FunctionName=function)
    assert groups(client) == ["lines"]
