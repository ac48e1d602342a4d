"""A group whose template, version or image is missing is refused, by the services' interfaces and in a stack."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.waiting import until

IMAGE = "resolve:ssm:/aws/service/deeplearning/ami"


@pytest.fixture(scope="module")
def template(client):
    """Makes a launch template for an image; returns its id."""

    def make(name: str, image: str) -> str:
        made = client("ec2").create_launch_template(LaunchTemplateName=name, LaunchTemplateData={"ImageId": image})
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    return make


def create(client, name: str, **more: Any) -> None:
    zones = ["us-east-1a"]
    client("autoscaling").create_auto_scaling_group(
        AutoScalingGroupName=name, MinSize=0, MaxSize=2, AvailabilityZones=zones, **more
    )


def image_of_the_first(client, name: str) -> str:
    """Raise a group to one instance; returns the image that it started from."""
    asg, ec2 = client("autoscaling"), client("ec2")
    asg.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=1)
    (group,) = asg.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    identifier = group["Instances"][0]["InstanceId"]
    return str(ec2.describe_instances(InstanceIds=[identifier])["Reservations"][0]["Instances"][0]["ImageId"])


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, "must contain a LaunchTemplate"),
        ({"LaunchTemplate": {"LaunchTemplateId": "lt-0123"}}, "launch template, lt-0123, does not exist"),
        ({"LaunchTemplate": {"LaunchTemplateName": "nobodys"}}, "launch template, nobodys, does not exist"),
    ],
)
def test_a_group_without_a_launch_template_that_is_there_is_refused(client, more, reason):
    with pytest.raises(ClientError, match=reason):
        create(client, "refused", **more)
    asg = client("autoscaling")
    assert not asg.describe_auto_scaling_groups(AutoScalingGroupNames=["refused"])["AutoScalingGroups"]


def test_a_version_that_a_template_lacks_is_refused(client, template):
    reference = {"LaunchTemplateId": template("versions", IMAGE), "Version": "7"}
    with pytest.raises(ClientError, match="has no version 7"):
        create(client, "refused", LaunchTemplate=reference)


def test_an_image_of_a_parameter_that_nobody_stored_is_refused(client, template):
    reference = {"LaunchTemplateId": template("no-parameter", "resolve:ssm:/mine/image")}
    with pytest.raises(ClientError, match=r"parameter /mine/image of the image .* does not exist"):
        create(client, "refused", LaunchTemplate=reference)
    with pytest.raises(ClientError, match=r"parameter /mine/image of the image .* does not exist"):
        client("ec2").run_instances(ImageId="resolve:ssm:/mine/image", MinCount=1, MaxCount=1)


def test_a_group_starts_from_the_image_that_a_stored_parameter_names(client, template):
    client("ssm").put_parameter(Name="/ours/image", Value="ami-0a1b2c3d4e5f60718", Type="String")
    template("stored", "resolve:ssm:/ours/image")
    create(client, "stored", LaunchTemplate={"LaunchTemplateName": "stored"})
    assert image_of_the_first(client, "stored") == "ami-0a1b2c3d4e5f60718"


def test_a_stack_may_name_an_image_by_awss_own_parameter(client):
    name = "/aws/service/deeplearning/ami/x86_64/an-image/latest/ami-id"
    image = client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    assert image.startswith("ami-")
    data = {"ImageId": "{{resolve:ssm:" + name + "}}", "InstanceType": "g5.xlarge"}
    properties = {"LaunchTemplateName": "by-reference", "LaunchTemplateData": data}
    template = {"Type": "AWS::EC2::LaunchTemplate", "Properties": properties}
    body = json.dumps({"Resources": {"Template": template}})
    client("cloudformation").create_stack(StackName="by-reference", TemplateBody=body)
    client("cloudformation").get_waiter("stack_create_complete").wait(StackName="by-reference")
    create(client, "by-reference", LaunchTemplate={"LaunchTemplateName": "by-reference"})
    assert image_of_the_first(client, "by-reference") == image


def test_a_group_whose_template_has_gone_starts_nothing(client, template):
    asg, identifier = client("autoscaling"), template("gone", IMAGE)
    create(client, "gone", LaunchTemplate={"LaunchTemplateId": identifier})
    client("ec2").delete_launch_template(LaunchTemplateId=identifier)
    asg.set_desired_capacity(AutoScalingGroupName="gone", DesiredCapacity=1)
    (group,) = asg.describe_auto_scaling_groups(AutoScalingGroupNames=["gone"])["AutoScalingGroups"]
    assert (group["DesiredCapacity"], group["Instances"]) == (1, [])


def test_a_stack_whose_group_could_not_start_fails(client):
    reference = {"LaunchTemplateId": "lt-0123", "Version": "1"}
    properties = {"MinSize": "0", "MaxSize": "1", "AvailabilityZones": ["us-east-1a"], "LaunchTemplate": reference}
    group = {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": properties}
    cloudformation = client("cloudformation")
    cloudformation.create_stack(StackName="unstartable", TemplateBody=json.dumps({"Resources": {"Group": group}}))

    def status() -> str:
        return str(cloudformation.describe_stacks(StackName="unstartable")["Stacks"][0]["StackStatus"])

    until(lambda: not status().endswith("IN_PROGRESS"))
    assert status() == "ROLLBACK_COMPLETE"
    events = cloudformation.describe_stack_events(StackName="unstartable")["StackEvents"]
    assert any("lt-0123, does not exist" in event.get("ResourceStatusReason", "") for event in events)
