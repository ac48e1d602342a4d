"""The example of a guarded stack deletes itself."""

import functools
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.shoal.outside import EXAMPLES, run


@pytest.mark.soak
def test_the_example_stack_deletes_itself(tmp_path, shoal_aws) -> None:
    cdk = functools.partial(run, tmp_path, "cdk")
    cdk("bootstrap", "aws://000000000000/us-east-1")
    cdk("deploy", "--app", f"{sys.executable} {EXAMPLES / 'guarded_stack.py'}", "--require-approval", "never")
    cloudformation, lambdas = shoal_aws.client("cloudformation"), shoal_aws.client("lambda")
    (stack,) = cloudformation.describe_stacks(StackName="WebShop")["Stacks"]
    resources = cloudformation.describe_stack_resources(StackName="WebShop")["StackResources"]
    (guard,) = (each["PhysicalResourceId"] for each in resources if each["ResourceType"] == "AWS::Lambda::Function")

    def wakes(hours: float) -> str:
        moment = (datetime.now(UTC) + timedelta(hours=hours)).isoformat()
        answer = lambdas.invoke(FunctionName=guard, Payload=json.dumps({"time": moment}).encode())
        assert "FunctionError" not in answer, answer["Payload"].read()
        return str(cloudformation.describe_stacks(StackName=stack["StackId"])["Stacks"][0]["StackStatus"])

    def account() -> dict[str, Any]:
        (kept,) = shoal_aws.client("ssm").get_parameters(Names=["/shoal-guard/WebShop/account"])["Parameters"]
        read: dict[str, Any] = json.loads(kept["Value"])
        return read

    assert wakes(0) == "CREATE_COMPLETE"
    assert wakes(1) == "CREATE_COMPLETE"
    assert account()["told"] == {}
    assert wakes(7.6) == "CREATE_COMPLETE"
    assert "end" in account()["told"]
    assert wakes(8.1).startswith("DELETE")
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack["StackId"], WaiterConfig={"Delay": 1})
