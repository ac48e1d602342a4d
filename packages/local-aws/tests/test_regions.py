"""Resources in a second region exist and work only in this region."""

import base64
import json
from typing import Any

import boto3
import pytest
from tests.local_aws.accounts import keys_of
from tests.local_aws.resources import ROLE, SUBNET, VPC, cluster
from tests.local_aws.stacks import Stacks
from tests.local_aws.waiting import until

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
            "Timeout": 60,
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


def test_a_stack_in_another_region_works_only_there(there, client, aws):
    stacks = Stacks(there)
    assert stacks.create("there", RESOURCES, outputs=OUTPUTS) == "CREATE_COMPLETE", stacks.reasons("there")
    (stack,) = there("cloudformation").describe_stacks(StackName="there")["Stacks"]
    assert f":{REGION}:" in stack["StackId"]
    assert client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"] == []
    assert client("emr").list_clusters()["Clusters"] == []
    assert there("emr").list_clusters()["Clusters"][0]["Status"]["State"] == "WAITING"
    values = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    assert values == {"Region": REGION, "Zone": f"{REGION}b"}
    (group,) = there("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    root = aws.folder / "nodes" / group["Instances"][0]["InstanceId"]
    until(lambda: (root / "ready").exists())
    assert json.loads((root / "place").read_text())["AvailabilityZone"] == f"{REGION}b"
    assert (root / "region").read_text().strip() == REGION
    assert stacks.delete("there") == "DELETE_COMPLETE"
    assert there("emr").list_clusters(ClusterStates=["WAITING"])["Clusters"] == []
