"""The example of a guarded stack deletes itself; the resources that it retains are found and deleted."""

import functools
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from shoal_guard import left_of

from tests.shoal.outside import EXAMPLES, run


@pytest.mark.soak
def test_the_example_stack_deletes_itself_and_its_leftovers_are_found(tmp_path, shoal_aws) -> None:
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
    assert account()["spent"] == pytest.approx(2 * 0.197 + 0.02, rel=0.1)
    assert account()["told"] == {}
    assert wakes(7.6) == "CREATE_COMPLETE"
    assert "end" in account()["told"]
    assert wakes(8.1).startswith("DELETE")
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack["StackId"], WaiterConfig={"Delay": 1})
    left = left_of("WebShop", session=shoal_aws)
    assert {each.kind for each in left if each.costs} == {"s3 bucket", "rds snapshot"}
    assert all(each.is_certain for each in left)
    assert {each.outcome for each in left_of("WebShop", session=shoal_aws, delete=True)} == {"deleted"}
    assert left_of("WebShop", session=shoal_aws) == []
