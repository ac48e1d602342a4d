"""The inventory of a real emulator, by the same list calls as on AWS."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from bootstrap.aws.account import Account
from bootstrap.removal.inventory import inventory, left_over
from bootstrap.removal.kinds import KINDS
from tests.aws import asked_aws

TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Topic": {"Type": "AWS::SNS::Topic"},
        "Share": {"Type": "AWS::EFS::FileSystem"},
        "Log": {"Type": "AWS::Logs::LogGroup"},
        "Cluster": {
            "Type": "AWS::EMR::Cluster",
            "Properties": {
                "Name": "cluster",
                "ReleaseLabel": "emr-7.13.0",
                "JobFlowRole": "nodes",
                "ServiceRole": "service",
                "Instances": {"MasterInstanceGroup": {"InstanceCount": 1, "InstanceType": "m5.xlarge"}},
            },
        },
    }
}


@pytest.fixture
def session(tmp_path) -> Iterator[boto3.Session]:
    with asked_aws(tmp_path):
        yield boto3.Session()


def test_the_resources_of_a_stack_are_found_and_after_its_deletion_none_is_left(session):
    before = inventory(session)
    cloudformation = session.client("cloudformation")
    cloudformation.create_stack(StackName="counted", TemplateBody=json.dumps(TEMPLATE))
    cloudformation.get_waiter("stack_create_complete").wait(StackName="counted", WaiterConfig={"Delay": 1})
    ec2 = session.client("ec2")
    instance = ec2.run_instances(ImageId="ami-1", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    found = left_over(before, inventory(session))
    assert set(found) >= {"cloudformation stack", "vpc", "s3 bucket", "sns topic", "efs file system", "log group"}
    assert found["cloudformation stack"] == {"counted"}
    assert len(found["emr cluster"]) == len(found["volume"]) == 1
    assert found["instance"] == {instance}
    ec2.terminate_instances(InstanceIds=[instance])
    cloudformation.delete_stack(StackName="counted")
    cloudformation.get_waiter("stack_delete_complete").wait(StackName="counted", WaiterConfig={"Delay": 1})
    assert left_over(before, inventory(session)) == {}


def test_every_page_is_read(session):
    ssm = session.client("ssm")
    names = {f"/many/{number}" for number in range(60)}
    for name in names:
        ssm.put_parameter(Name=name, Value="x", Type="String")
    assert {name for name, _ in KINDS["ssm parameter"].things(Account(session))} == names
