import os
from contextlib import nullcontext, suppress
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.aws import ACCOUNT, REGION
from shoal_local_aws.permissions.record import ALLOWED, DENIED, read_checks
from tests.local_aws.accounts import keys_of, session_with
from tests.local_aws.resources import ROLES, SUBNET, VPC, of_kind
from tests.local_aws.waiting import until

CLUSTER = {**ROLES, "Instances": {"MasterInstanceType": "m5.xlarge", "InstanceCount": 1}}


def allowing(*statements, **condition):
    made = [{"Effect": "Allow", "Action": actions, "Resource": resources} for actions, resources in statements]
    return {"Version": "2012-10-17", "Statement": [{**each, "Condition": condition} for each in made]}


def person(*statements, **condition):
    """Create a user with only these policy statements, and return a function that makes the user's clients."""
    return session_with(allowing(*statements, **condition)).client


def last(aws, action):
    return [check for check in read_checks(aws.folder) if check.action == action][-1]


def test_policies_decide_and_the_record_has_user_and_policies(aws):
    s3 = person((["s3:CreateBucket"], ["arn:aws:s3:::mine-*"]))("s3")
    s3.create_bucket(Bucket="mine-1")
    found = last(aws, "s3:CreateBucket")
    assert found.principal.startswith(f"arn:aws:iam::{ACCOUNT}:user/person-")
    assert (found.resource, found.decision) == ("arn:aws:s3:::mine-1", ALLOWED)
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.create_bucket(Bucket="another")
    assert last(aws, "s3:CreateBucket").decision == DENIED


@pytest.mark.parametrize("key", ["test", ACCOUNT, "root"])
def test_root_and_wrong_secrets_are_refused(aws, key):
    for service, operation in (("s3", "list_buckets"), ("ec2", "describe_vpcs"), ("sts", "get_caller_identity")):
        client = boto3.client(
            service, aws_access_key_id=key, aws_secret_access_key="test", endpoint_url=aws.endpoint, region_name=REGION
        )
        with pytest.raises(ClientError):
            getattr(client, operation)()
    keys = {**keys_of(aws), "aws_secret_access_key": "guessed"}
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        boto3.client("s3", **keys, endpoint_url=aws.endpoint, region_name=REGION).list_buckets()


def test_each_name_of_a_list_is_checked(aws):
    one, two = (f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/{name}" for name in ("one", "two"))
    names = ["/one", "/two"]
    person((["ssm:GetParameters"], [one, two]))("ssm").get_parameters(Names=names)
    with pytest.raises(ClientError, match="AccessDenied"):
        person((["ssm:GetParameters"], [one]))("ssm").get_parameters(Names=names)


def test_a_tag_condition_applies_to_tagged_resources():
    ec2 = boto3.client("ec2")
    tagged = {"StringEquals": {"aws:ResourceTag/ours": "yes"}}
    own = person((["ec2:DeleteSecurityGroup"], ["*"]), **tagged)("ec2")
    ours, others = (
        ec2.create_security_group(GroupName=name, Description=name)["GroupId"] for name in ("ours", "others")
    )
    ec2.create_tags(Resources=[ours], Tags=[{"Key": "ours", "Value": "yes"}])
    own.delete_security_group(GroupId=ours)
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        own.delete_security_group(GroupId=others)
    ec2.delete_security_group(GroupId=others)


@pytest.mark.usefixtures("aws")
def test_a_variable_in_a_resource_is_the_value_of_the_callers_condition_key():
    client = person((["s3:CreateBucket"], ["arn:aws:s3:::${aws:username}-*"]))
    s3, name = client("s3"), client("sts").get_caller_identity()["Arn"].rpartition("/")[2]
    s3.create_bucket(Bucket=f"{name}-one")
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.create_bucket(Bucket="another-one")


def test_passing_a_role_needs_permission(aws):
    run = (["elasticmapreduce:*"], ["*"])
    with pytest.raises(ClientError, match=r"iam:PassRole|AccessDenied"):
        person(run)("emr").run_job_flow(Name="passed", **CLUSTER)
    roles = [f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("nodes", "service")]
    emr = person(run, (["iam:PassRole"], roles))("emr")
    cluster = emr.run_job_flow(Name="passed", **CLUSTER)["JobFlowId"]
    passed = [each for each in read_checks(aws.folder) if (each.action, each.decision) == ("iam:PassRole", ALLOWED)]
    services = [each.context["iam:PassedToService"] for each in passed if each.who.startswith("user/person-")]
    assert services == ["ec2.amazonaws.com", "elasticmapreduce.amazonaws.com"]
    emr.terminate_job_flows(JobFlowIds=[cluster])


@pytest.fixture(scope="module")
def group(aws):
    """Arguments of UpdateAutoScalingGroup for an existing group without instances."""
    data = {
        "ImageId": "ami-1",
        "IamInstanceProfile": {"Name": "nodes"},
        "SecurityGroupIds": ["sg-00000001"],
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "ours", "Value": "yes"}]}],
    }
    ec2 = boto3.client("ec2")
    ec2.create_launch_template(LaunchTemplateName="tried", LaunchTemplateData=data)
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    named = {"AutoScalingGroupName": "tried", "MinSize": 0, "MaxSize": 1, "VPCZoneIdentifier": subnet}
    boto3.client("autoscaling").create_auto_scaling_group(**named, LaunchTemplate={"LaunchTemplateName": "tried"})
    return named


def test_changing_more_than_a_groups_size_needs_the_permissions_of_a_launch(group):
    own, run, tag = (([action], ["*"]) for action in ("autoscaling:*", "ec2:RunInstances", "ec2:CreateTags"))
    given = (["iam:PassRole"], [f"arn:aws:iam::{ACCOUNT}:role/nodes"])
    scaling = person(own)("autoscaling")
    scaling.set_desired_capacity(AutoScalingGroupName="tried", DesiredCapacity=0)
    scaling.update_auto_scaling_group(AutoScalingGroupName="tried", MinSize=0, MaxSize=2, DesiredCapacity=0)
    for statements, lacking in (
        ((own,), "ec2:RunInstances"),
        ((own, run), "ec2:CreateTags"),
        ((own, run, tag), "iam:PassRole"),
    ):
        with pytest.raises(ClientError, match=rf"AccessDenied.*launch template: tried. .*perform: {lacking} on"):
            person(*statements)("autoscaling").update_auto_scaling_group(**group)
        more = {**group, "AutoScalingGroupName": "untried", "LaunchTemplate": {"LaunchTemplateName": "tried"}}
        with pytest.raises(ClientError, match=lacking):
            person(*statements)("autoscaling").create_auto_scaling_group(**more)
    person(own, run, tag, given)("autoscaling").update_auto_scaling_group(**group)


@pytest.mark.parametrize(
    ("resource", "keys", "other"),
    [
        ("instance/*", {"aws:RequestTag/ours": "yes"}, "no"),
        ("instance/*", {"ec2:InstanceProfile": f"arn:aws:iam::{ACCOUNT}:instance-profile/nodes"}, "other"),
        (":image/*", {"ec2:Owner": "amazon"}, ACCOUNT),
        ("subnet/*", {}, ""),
        ("security-group/*", {}, ""),
    ],
)
def test_each_resource_of_a_launch_needs_permission_with_the_condition_keys_of_its_type(resource, keys, other, group):
    place = f"arn:aws:ec2:{REGION}:" + (resource if resource.startswith(":") else f"{ACCOUNT}:{resource}")
    every = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    deny = {"Effect": "Deny", "Action": "ec2:RunInstances", "Resource": place}
    document = {"Version": "2012-10-17", "Statement": [every, deny]}
    for values, refused in ((keys, True), (dict.fromkeys(keys, other), not keys)):
        deny["Condition"] = {"StringEquals": values} if values else {}
        scaling = session_with(document).client("autoscaling")
        with pytest.raises(ClientError, match="ec2:RunInstances") if refused else nullcontext():
            scaling.update_auto_scaling_group(**group)


def output_of(script, **more):
    """Return the output of a new instance with this user data."""
    ec2 = boto3.client("ec2")
    (made,) = ec2.run_instances(ImageId="ami-1", MinCount=1, MaxCount=1, UserData=script, **more)["Instances"]

    def ended():
        printed = str(ec2.get_console_output(InstanceId=made["InstanceId"]).get("Output", ""))
        return printed if "user data ended" in printed else None

    printed = str(until(ended))
    ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    return printed


def test_a_node_has_the_role_of_its_profile_or_no_role(upload):
    upload("of-nodes", "object", b"text")
    script = '#!/bin/bash\naws s3 cp s3://of-nodes/object - || echo "got nothing"'
    assert "text" in output_of(script, IamInstanceProfile={"Name": "nodes"})
    assert "Unable to locate credentials" in output_of(script)


def test_an_endpoint_policy_limits_requests(stacks, upload):
    for bucket in ("let-through", "kept-out"):
        upload(bucket, "object", b"text")
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "s3:Get*", "Resource": "arn:aws:s3:::let-through/*"}
    service = {"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"}
    policy = {"PolicyDocument": {"Statement": [allowed]}}
    endpoint = of_kind("AWS::EC2::VPCEndpoint", ServiceName=service, **policy)
    resources = {"Vpc": VPC, "Subnet": SUBNET, "Endpoint": endpoint}
    assert stacks.create("through", resources) == "CREATE_COMPLETE"
    read = [f"aws s3api get-object --bucket {name} --key object {name}.txt" for name in ("let-through", "kept-out")]
    place = {"SubnetId": stacks.physical("through", "Subnet"), "IamInstanceProfile": {"Name": "nodes"}}
    printed = output_of("\n".join(["#!/bin/bash", *read, "ls"]), **place)
    assert "let-through.txt" in printed
    assert "AccessDenied" in printed
    assert "kept-out.txt" not in printed
    assert stacks.delete("through") == "DELETE_COMPLETE"


def test_the_emulators_folder_does_not_contain_the_users_keys(aws):
    secret = aws.environment["AWS_SECRET_ACCESS_KEY"]
    found = []
    for folder, _, names in os.walk(aws.folder):
        for path in (Path(folder) / name for name in names):
            with suppress(FileNotFoundError):  # another test's machine may be deleted at the same time
                if path.is_file() and secret in path.read_text(errors="replace"):
                    found.append(path)
    assert found == [Path(aws.environment["AWS_SHARED_CREDENTIALS_FILE"])]
