"""When a resource of a stack cannot be deleted, the resources that it needs stay until the next attempt."""

from typing import Any

from embedded.faults.kinds import DeleteFails
from tests import slow
from tests.waiting import until

RESOURCES: dict[str, Any] = {
    "Bucket": {"Type": "AWS::S3::Bucket"},
    "Guard": {"Type": "AWS::SNS::Topic", "DependsOn": "Bucket"},
    "Costly": {"Type": "AWS::SQS::Queue", "DependsOn": "Guard"},
    "Unneeded": {"Type": "AWS::SNS::Topic"},
}


def left(stacks, name: str) -> set[str]:
    found = stacks.cloudformation.list_stack_resources(StackName=name)["StackResourceSummaries"]
    return {each["LogicalResourceId"] for each in found if each["ResourceStatus"] != "DELETE_COMPLETE"}


def test_what_a_resource_needs_is_not_deleted_before_it(stacks, client, aws):
    stacks.create("order", RESOURCES)
    topic = stacks.physical("order", "Guard")
    with aws.faults.during(DeleteFails(logical_id="Costly", times=1)):
        assert stacks.delete("order") == "DELETE_FAILED"
    assert left(stacks, "order") == {"Bucket", "Guard", "Costly"}
    assert client("sns").get_topic_attributes(TopicArn=topic)
    assert stacks.delete("order") == "DELETE_COMPLETE"


def test_what_only_a_resource_left_behind_needed_is_deleted(stacks, client, aws):
    stacks.create("left", RESOURCES)
    with aws.faults.during(DeleteFails(logical_id="Costly")):
        assert stacks.delete("left") == "DELETE_FAILED"
        assert stacks.delete("left", RetainResources=["Costly"]) == "DELETE_COMPLETE"
    assert client("sns").list_topics()["Topics"] == []


# Deleted only after an explicit request.
SLOW = """
import json, time, urllib.request
import boto3

def handler(event, context):
    while event["RequestType"] == "Delete":
        if boto3.client("s3").list_objects_v2(Bucket="slow-delete").get("KeyCount"):
            break
        time.sleep(0.1)
    answer = {"Status": "SUCCESS", "PhysicalResourceId": "slow", "Data": {}}
    answer |= {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    request = urllib.request.Request(
        event["ResponseURL"], data=json.dumps(answer).encode(), method="PUT", headers={"Content-Type": ""}
    )
    urllib.request.urlopen(request)
"""


def test_deleting_again_meanwhile_lets_go_of_nothing(stacks, client, aws):
    function = {
        "Runtime": "python3.14",
        "Handler": "index.handler",
        "Code": {"ZipFile": SLOW},
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Timeout": 60,
    }
    resources = {
        **RESOURCES,
        "Role": slow.ROLE,
        "Function": {"Type": "AWS::Lambda::Function", "Properties": function},
        # It goes before the queue, which then fails to go.
        "Slow": {
            "Type": "Custom::Slow",
            "DependsOn": "Costly",
            "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}},
        },
    }
    client("s3").create_bucket(Bucket="slow-delete")
    assert stacks.create("again", resources) == "CREATE_COMPLETE", stacks.reasons("again")

    def status() -> str:
        return str(stacks.cloudformation.describe_stacks(StackName="again")["Stacks"][0]["StackStatus"])

    with aws.faults.during(DeleteFails(logical_id="Costly", times=1)):
        stacks.cloudformation.delete_stack(StackName="again")
        until(lambda: status() == "DELETE_IN_PROGRESS")
        stacks.cloudformation.delete_stack(StackName="again")
        client("s3").put_object(Bucket="slow-delete", Key="go", Body=b"")
        until(lambda: status() == "DELETE_FAILED")
    assert left(stacks, "again") == {"Bucket", "Guard", "Costly"}
    assert stacks.delete("again") == "DELETE_COMPLETE"
