import json
import re

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.aws import ACCOUNT, REGION
from shoal_local_aws.permissions.record import ALLOWED, read_checks
from tests.local_aws.resources import of_kind

TOPIC = {"Type": "AWS::SNS::Topic", "Properties": {"Tags": [{"Key": "a", "Value": "b"}]}}
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
LIMIT = f"arn:aws:iam::{ACCOUNT}:policy/limit"
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}


def allow(actions, resource="*", **condition):
    statement = {"Effect": "Allow", "Action": actions, "Resource": resource}
    return {**statement, "Condition": condition} if condition else statement


@pytest.fixture
def role(aws):
    """Return a function that limits the execution role `limited` to policy statements, and returns the role's ARN."""
    iam = boto3.client("iam")
    iam.create_role(RoleName="limited", AssumeRolePolicyDocument=json.dumps(TRUST))

    def limited(*statements):
        document = json.dumps({"Version": "2012-10-17", "Statement": [*statements]})
        iam.put_role_policy(RoleName="limited", PolicyName="own", PolicyDocument=document)
        return f"arn:aws:iam::{ACCOUNT}:role/limited"

    yield limited
    iam.delete_role_policy(RoleName="limited", PolicyName="own")
    iam.delete_role(RoleName="limited")


CREATES = ["sns:CreateTopic", "sns:TagResource", "sns:Get*", "sns:List*"]


@pytest.mark.parametrize("lacking", ["sns:CreateTopic", "sns:TagResource", "sns:Get*"])
def test_a_stack_fails_without_leftovers_if_its_role_lacks_an_action(lacking, stacks, role, messages):
    own = role(allow([each for each in CREATES if each != lacking]), allow(["sns:DeleteTopic"]))
    assert stacks.create("lacking", {"Topic": TOPIC}, RoleARN=own) == "ROLLBACK_COMPLETE"
    reason = stacks.reason("lacking", "Topic")
    messages.hide(re.findall("RequestToken: ([0-9a-f-]+)", reason)[0], "TOKEN")
    messages.check(reason)
    assert boto3.client("sns").list_topics()["Topics"] == []
    stacks.delete("lacking")


def test_updates_and_deletions_are_checked_too(stacks, role):
    own = role(allow(CREATES))
    assert stacks.create("later", {"Topic": TOPIC}, RoleARN=own) == "CREATE_COMPLETE", stacks.reasons("later")
    named = {**TOPIC, "Properties": {**TOPIC["Properties"], "DisplayName": "later"}}
    assert stacks.update("later", {"Topic": named}) == "UPDATE_ROLLBACK_COMPLETE"
    assert "sns:SetTopicAttributes" in stacks.reasons("later")
    assert stacks.delete("later") == "DELETE_FAILED"
    assert "sns:DeleteTopic" in stacks.reasons("later")
    role(allow(["sns:*"], f"arn:aws:sns:{REGION}:{ACCOUNT}:later-*"))
    assert stacks.delete("later") == "DELETE_COMPLETE"


def test_a_boundary_can_be_required_of_roles(stacks, role, aws):
    boto3.client("iam").create_policy(PolicyName="limit", PolicyDocument=json.dumps(POLICY))
    bounded = {"StringEquals": {"iam:PermissionsBoundary": LIMIT}}
    own = role(
        allow(["iam:CreateRole", "iam:*RolePolicy"], f"arn:aws:iam::{ACCOUNT}:role/bounded-*", **bounded),
        allow(["iam:Get*", "iam:List*", "iam:TagRole", "iam:UntagRole", "iam:DeleteRole"]),
    )
    free = of_kind("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST)
    held = of_kind("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST, PermissionsBoundary=LIMIT)
    own_policy = {"PolicyName": "own", "PolicyDocument": POLICY, "Roles": [{"Ref": "Role"}]}
    policy = {"Type": "AWS::IAM::Policy", "Properties": own_policy}
    for name, made, ends in (
        ("bounded-free", free, "ROLLBACK_COMPLETE"),
        ("other", held, "ROLLBACK_COMPLETE"),
        ("bounded-held", held, "CREATE_COMPLETE"),
    ):
        assert stacks.create(name, {"Role": made, "Policy": policy}, RoleARN=own) == ends, stacks.reasons(name)
        assert ("iam:CreateRole" in stacks.reasons(name)) is (ends != "CREATE_COMPLETE")
        assert stacks.delete(name) == "DELETE_COMPLETE", stacks.reasons(name)
    put = [each for each in read_checks(aws.folder) if each.action == "iam:PutRolePolicy"]
    bounded_puts = [each for each in put if "bounded-" in each.resource]
    assert {(each.decision, each.context["iam:PermissionsBoundary"]) for each in bounded_puts} == {(ALLOWED, LIMIT)}
    assert {each.principal.partition(":assumed-role/")[2] for each in bounded_puts} == {"limited/AWSCloudFormation"}


def test_the_parameters_that_a_template_names_are_read_with_the_role(stacks, role, client, messages):
    client("ssm").put_parameter(Name="/named", Value="3", Type="String")
    own = role(allow(["sns:*"]))
    named = {"Named": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/named"}}
    template = json.dumps({"Parameters": named, "Resources": {"Topic": TOPIC}})
    with messages.raises(ClientError):
        client("cloudformation").create_stack(StackName="parameters", TemplateBody=template, RoleARN=own)
    referring = {**TOPIC, "Properties": {"DisplayName": "{{resolve:ssm:/named}}"}}
    assert stacks.create("referring", {"Topic": referring}, RoleARN=own) == "ROLLBACK_COMPLETE"
    assert "ssm:GetParameters" in stacks.reasons("referring")
    role(allow(["sns:*"]), allow(["ssm:GetParameters"], f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/named"))
    assert stacks.delete("referring") == "DELETE_COMPLETE"
    assert stacks.create("referring", {"Topic": referring}, RoleARN=own) == "CREATE_COMPLETE"
    stacks.delete("referring")


def test_an_unlisted_type_needs_a_role_with_all_permissions(stacks, role):
    queue = {"Type": "AWS::SQS::Queue"}
    assert stacks.create("unknown", {"Queue": queue}, RoleARN=role(allow(["sqs:*"]))) == "ROLLBACK_COMPLETE"
    stacks.delete("unknown")
    assert stacks.create("unknown", {"Queue": queue}, RoleARN=role(allow(["*"]))) == "CREATE_COMPLETE"
    stacks.delete("unknown")
