"""In another region than the emulator's own, resources are created and work there only."""

import base64
import json
from typing import Any

import boto3
import pytest

from tests.aws import keys_of
from tests.embedded.resources import SUBNET, VPC, cluster
from tests.slow import ROLE
from tests.waiting import until

REGION = "eu-west-1"
CODE = """
import json, os, urllib.request
import boto3

def handler(event, context):
    subnets = boto3.client("ec2").describe_subnets(SubnetIds=[event["ResourceProperties"]["Subnet"]])["Subnets"]
    answer = {
        "Status": "SUCCESS", "PhysicalResourceId": "custom", "StackId": event["StackId"],
        "RequestId": event["RequestId"], "LogicalResourceId": event["LogicalResourceId"],
        "Data": {"Region": os.environ["AWS_REGION"], "Zone": subnets[0]["AvailabilityZone"]},
    }
    request = urllib.request.Request(
        event["ResponseURL"], data=json.dumps(answer).encode(), method="PUT", headers={"Content-Type": ""}
    )
    urllib.request.urlopen(request)
"""
USER_DATA = """#!/bin/bash
query='Reservations[0].Instances[0].Placement'
aws ec2 describe-instances --instance-ids $EC2_INSTANCE_ID --query "$query" > $NODE_ROOT/place
ec2-metadata --quiet --region > $NODE_ROOT/region
touch $NODE_ROOT/ready
"""
RESOURCES: dict[str, Any] = {
    "Vpc": VPC,
    "Subnet": {
        **SUBNET,
        "Properties": {**SUBNET["Properties"], "AvailabilityZone": {"Fn::Select": [1, {"Fn::GetAZs": ""}]}},
    },
    "Role": ROLE,
    "Function": {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Runtime": "python3.14",
            "Handler": "index.handler",
            "Code": {"ZipFile": CODE},
            "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        },
    },
    "Custom": {
        "Type": "Custom::Look",
        "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}, "Subnet": {"Ref": "Subnet"}},
    },
    "Cluster": cluster(),
    "Template": {
        "Type": "AWS::EC2::LaunchTemplate",
        "Properties": {
            "LaunchTemplateData": {
                "ImageId": "ami-0a1b2c3d4e5f60718",
                "InstanceType": "g5.xlarge",
                "IamInstanceProfile": {"Name": "nodes"},
                "UserData": base64.b64encode(USER_DATA.encode()).decode(),
            }
        },
    },
    "Nodes": {
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "Properties": {
            "MinSize": "0",
            "MaxSize": "1",
            "DesiredCapacity": "1",
            "VPCZoneIdentifier": [{"Ref": "Subnet"}],
            "LaunchTemplate": {
                "LaunchTemplateId": {"Ref": "Template"},
                "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]},
            },
        },
    },
}
OUTPUTS = {name: {"Value": {"Fn::GetAtt": ["Custom", name]}} for name in ("Region", "Zone")}


@pytest.fixture(scope="module")
def there(aws):
    session = boto3.Session(**keys_of(aws), region_name=REGION)
    return lambda service: session.client(service, endpoint_url=aws.endpoint)


@pytest.fixture(scope="module")
def stack(there):
    cloudformation = there("cloudformation")
    cloudformation.create_stack(
        StackName="there",
        TemplateBody=json.dumps({"Resources": RESOURCES, "Outputs": OUTPUTS}),
        Capabilities=["CAPABILITY_IAM"],
    )

    def settled() -> Any:
        found = cloudformation.describe_stacks(StackName="there")["Stacks"][0]
        return not found["StackStatus"].endswith("IN_PROGRESS") and found

    return until(settled)


def test_a_stack_of_another_region_comes_up_there(stack, there, client):
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    assert f":{REGION}:" in stack["StackId"]
    assert client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"] == []
    assert client("emr").list_clusters()["Clusters"] == []
    assert there("emr").list_clusters()["Clusters"][0]["Status"]["State"] == "WAITING"


def test_its_functions_speak_to_their_own_region(stack):
    values = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    assert values == {"Region": REGION, "Zone": f"{REGION}b"}


def test_its_nodes_speak_to_their_own_region(stack, there, aws):
    (group,) = there("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    root = aws.folder / "nodes" / group["Instances"][0]["InstanceId"]
    until(lambda: (root / "ready").exists())
    assert json.loads((root / "place").read_text())["AvailabilityZone"] == f"{REGION}b"
    assert (root / "region").read_text().strip() == REGION


def test_it_is_deleted_there(stack, there):
    there("cloudformation").delete_stack(StackName="there")
    until(
        lambda: (
            there("cloudformation").describe_stacks(StackName=stack["StackId"])["Stacks"][0]["StackStatus"]
            == "DELETE_COMPLETE"
        )
    )
    assert there("emr").list_clusters(ClusterStates=["WAITING"])["Clusters"] == []
