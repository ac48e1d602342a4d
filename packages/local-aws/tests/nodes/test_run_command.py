"""Run Command of Systems Manager."""

import json

import boto3
import pytest
from botocore.exceptions import ClientError, WaiterError
from shoal_local_aws.aws import ACCOUNT, REGION

pytestmark = pytest.mark.usefixtures("raised_quotas")
SHELL = "AWS-RunShellScript"
IMAGE = "ami-0a1b2c3d4e5f60718"
CORE = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"


def launched(profile="nodes", **more):
    asked = {"ImageId": IMAGE, "MinCount": 1, "MaxCount": 1, "InstanceType": "g5.xlarge", **more}
    profiles = {"IamInstanceProfile": {"Name": profile}} if profile else {}
    ec2 = boto3.client("ec2")
    identifier = ec2.run_instances(**asked, **profiles)["Instances"][0]["InstanceId"]
    ec2.get_waiter("instance_running").wait(InstanceIds=[identifier], WaiterConfig={"Delay": 1})
    return identifier


@pytest.fixture(scope="module")
def node(raised_quotas):
    tags = [{"Key": "team", "Value": "fish"}]
    return launched(TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])


@pytest.fixture(scope="module")
def ssm(aws):
    return boto3.client("ssm")


def send(ssm, node, *commands, **parameters):
    asked = {"commands": list(commands), **{name: [value] for name, value in parameters.items()}}
    return ssm.send_command(InstanceIds=[node], DocumentName=SHELL, Parameters=asked)["Command"]["CommandId"]


def result(ssm, node, command):
    try:
        ssm.get_waiter("command_executed").wait(CommandId=command, InstanceId=node, WaiterConfig={"Delay": 1})
    except WaiterError as error:
        return error.last_response
    return ssm.get_command_invocation(CommandId=command, InstanceId=node)


def test_a_script_runs_on_the_instance_and_its_output_is_returned(ssm, node, aws):
    done = result(ssm, node, send(ssm, node, "cd", "ec2-metadata --instance-id", "pwd", "echo no >&2"))
    home = aws.folder / "nodes" / node / "root"
    assert (done["Status"], done["ResponseCode"]) == ("Success", 0)
    assert (done["StandardOutputContent"], done["StandardErrorContent"]) == (f"instance-id: {node}\n{home}\n", "no\n")
    assert done["ExecutionEndDateTime"] >= done["ExecutionStartDateTime"] > ""


def test_a_script_that_fails_fails_the_command(ssm, node):
    command = send(ssm, node, "exit 3")
    done = result(ssm, node, command)
    assert (done["Status"], done["StatusDetails"], done["ResponseCode"]) == ("Failed", "Failed", 3)
    assert ssm.list_commands(CommandId=command)["Commands"][0]["Status"] == "Failed"


def test_a_script_is_stopped_at_its_execution_timeout(ssm, node):
    done = result(ssm, node, send(ssm, node, "echo a; sleep 1000", executionTimeout="1"))
    assert (done["Status"], done["StatusDetails"]) == ("TimedOut", "Execution Timed Out")
    assert done["StandardOutputContent"] == "a\n"


def test_invocations_are_listed(ssm, node):
    command = send(ssm, node, "echo listed")
    result(ssm, node, command)
    (found,) = ssm.list_command_invocations(CommandId=command, Details=True)["CommandInvocations"]
    assert (found["InstanceId"], found["Status"]) == (node, "Success")
    assert found["CommandPlugins"][0]["Output"] == "listed\n"
    listed = ssm.list_command_invocations(InstanceId=node)["CommandInvocations"]
    assert (listed[0]["CommandId"], listed[0]["CommandPlugins"]) == (command, [])
    assert ssm.list_command_invocations(InstanceId="i-0123456789abcdef0")["CommandInvocations"] == []


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"Parameters": {}}, "InvalidParameters"),
        ({"Parameters": {"commands": ["x"], "shell": ["bash"]}}, "InvalidParameters"),
        ({"Parameters": {"commands": ["x"], "executionTimeout": ["172801"]}}, "InvalidParameters"),
        ({"Parameters": {"commands": ["x"], "executionTimeout": ["soon"]}}, "InvalidParameters"),
        ({"DocumentName": "MyDocument"}, "InvalidDocument"),
        ({"OutputS3BucketName": "logs"}, "ValidationException"),
        ({"InstanceIds": ["i-0123456789abcdef0"]}, "InvalidInstanceId"),
    ],
)
def test_wrong_requests_are_refused(ssm, node, asked, code):
    good = {"InstanceIds": [node], "DocumentName": SHELL, "Parameters": {"commands": ["echo"]}}
    with pytest.raises(ClientError, match=code):
        ssm.send_command(**{**good, **asked})


def profile_with(*policies):
    iam, name = boto3.client("iam"), "agents"
    trust = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)
    for policy in policies:
        iam.attach_role_policy(RoleName=name, PolicyArn=policy)
    iam.create_instance_profile(InstanceProfileName=name)
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    return name


def test_only_instances_with_a_registered_agent_get_commands(ssm):
    """The agent needs permissions, and a network that reaches Systems Manager."""
    iam, ec2 = boto3.client("iam"), boto3.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.0.0/24")["Subnet"]["SubnetId"]

    def refuses(node):
        try:
            send(ssm, node, "echo")
        except ClientError as error:
            expected = f"Instances [[{node}]] not in a valid state for account {ACCOUNT}"
            return error.response["Error"] == {"Code": "InvalidInstanceId", "Message": expected}
        return False

    assert refuses(launched(""))
    node = launched(profile_with())
    assert refuses(node)
    iam.attach_role_policy(RoleName="agents", PolicyArn=CORE)
    assert not refuses(node)
    alone = launched("agents", SubnetId=subnet)
    for service in ("ssm", "ssmmessages"):
        assert refuses(alone)
        name = f"com.amazonaws.{REGION}.{service}"
        ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=name, VpcEndpointType="Interface", SubnetIds=[subnet])
    assert not refuses(alone)
    ec2.terminate_instances(InstanceIds=[alone])
    assert refuses(alone)


def test_an_instance_calls_only_services_that_its_network_reaches(ssm):
    ec2 = boto3.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.8.0.0/24")["Subnet"]["SubnetId"]
    for service in ("ssm", "ssmmessages"):
        name = f"com.amazonaws.{REGION}.{service}"
        ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=name, VpcEndpointType="Interface", SubnetIds=[subnet])
    node = launched(SubnetId=subnet)
    done = result(ssm, node, send(ssm, node, "aws s3 ls; aws ec2 describe-vpcs"))
    assert f"connect to ec2: {vpc} has neither an endpoint for it nor" in done["StandardErrorContent"]
    assert "ListBuckets" not in done["StandardErrorContent"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
    assert result(ssm, node, send(ssm, node, "aws ec2 describe-vpcs"))["Status"] == "Success"
