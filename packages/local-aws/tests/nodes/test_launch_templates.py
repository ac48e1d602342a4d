import pytest
from botocore.exceptions import ClientError

pytestmark = pytest.mark.usefixtures("raised_quotas")

IMAGE = "ami-0a1b2c3d4e5f60718"


def template(client, name, image):
    """Create a launch template for an image, and return its id."""
    made = client("ec2").create_launch_template(LaunchTemplateName=name, LaunchTemplateData={"ImageId": image})
    return made["LaunchTemplate"]["LaunchTemplateId"]


def create(client, name, **more):
    size = {"MinSize": 0, "MaxSize": 2, "AvailabilityZones": ["us-east-1a"]}
    client("autoscaling").create_auto_scaling_group(AutoScalingGroupName=name, **size, **more)


def image_of_the_first(client, name):
    """Scale a group to one instance, and return the image of this instance."""
    asg, ec2 = client("autoscaling"), client("ec2")
    asg.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=1)
    (group,) = asg.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    identifier = group["Instances"][0]["InstanceId"]
    return str(ec2.describe_instances(InstanceIds=[identifier])["Reservations"][0]["Instances"][0]["ImageId"])


@pytest.mark.parametrize("named", [{}, {"LaunchTemplate": {"LaunchTemplateName": "nobodys"}}], ids=["none", "name"])
def test_a_group_that_could_not_start_is_refused_and_fails_its_stack(named, client, stacks, messages):
    with messages.raises(ClientError):
        create(client, "refused", **named)
    asg = client("autoscaling")
    assert not asg.describe_auto_scaling_groups(AutoScalingGroupNames=["refused"])["AutoScalingGroups"]
    properties = {"MinSize": "0", "MaxSize": "1", "AvailabilityZones": ["us-east-1a"], **named}
    group = {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": properties}
    assert stacks.create("refused", {"Group": group}) == "ROLLBACK_COMPLETE"
    messages.check(stacks.reason("refused", "Group"))
    stacks.delete("refused")


def test_a_group_needs_an_existing_subnet_in_the_vpc_of_its_security_groups(client, messages):
    ec2 = client("ec2")
    vpcs = [ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"] for _ in range(2)]
    subnets = [ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"] for vpc in vpcs]
    group = ec2.create_security_group(GroupName="nodes", Description="Nodes", VpcId=vpcs[0])["GroupId"]
    data = {"ImageId": IMAGE, "SecurityGroupIds": [group]}
    ec2.create_launch_template(LaunchTemplateName="grouped", LaunchTemplateData=data)
    named = {"LaunchTemplate": {"LaunchTemplateName": "grouped"}}
    for subnet in ("subnet-0badbadbad", subnets[1]):
        with messages.raises(ClientError):
            create(client, "grouped", VPCZoneIdentifier=subnet, **named)
    create(client, "grouped", VPCZoneIdentifier=subnets[0], **named)


def test_a_stack_may_name_an_image_by_a_public_parameter(client, stacks):
    name = "/aws/service/deeplearning/ami/x86_64/an-image/latest/ami-id"
    image = client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    (described,) = client("ec2").describe_images(Filters=[{"Name": "image-id", "Values": [image]}])["Images"]
    assert described["RootDeviceName"] == "/dev/xvda"
    data = {"ImageId": "{{resolve:ssm:" + name + "}}", "InstanceType": "g5.xlarge"}
    properties = {"LaunchTemplateName": "by-reference", "LaunchTemplateData": data}
    template = {"Type": "AWS::EC2::LaunchTemplate", "Properties": properties}
    assert stacks.create("by-reference", {"Template": template}) == "CREATE_COMPLETE"
    create(client, "by-reference", LaunchTemplate={"LaunchTemplateName": "by-reference"})
    assert image_of_the_first(client, "by-reference") == image


def test_a_group_without_its_template_starts_no_instance(client):
    asg, identifier = client("autoscaling"), template(client, "gone", IMAGE)
    create(client, "gone", LaunchTemplate={"LaunchTemplateId": identifier})
    client("ec2").delete_launch_template(LaunchTemplateId=identifier)
    asg.set_desired_capacity(AutoScalingGroupName="gone", DesiredCapacity=1)
    (group,) = asg.describe_auto_scaling_groups(AutoScalingGroupNames=["gone"])["AutoScalingGroups"]
    assert (group["DesiredCapacity"], group["Instances"]) == (1, [])
