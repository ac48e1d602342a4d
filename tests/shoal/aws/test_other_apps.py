"""An identity with only the policy ShoalUser gets no role other than Shoal's.

The account has stacks of other CDK apps, with a role with AdministratorAccess, as `cdk bootstrap` creates it.
"""

import json

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.aws import ACCOUNT, REGION
from shoal_local_aws.permissions.record import Check
from tests.local_aws.accounts import session_with

from infra.policies import POLICIES, USER, document
from shoal.aws import cdk, policies
from shoal.aws.account import Account
from tests.infra.handled import statements
from tests.infra.replay import is_allowed

TRUST = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}
EMPTY = {"Resources": {"Nothing": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}}
ROLE = {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [TRUST]}}
MORE = json.dumps({"Resources": {**EMPTY["Resources"], "Mine": {"Type": "AWS::IAM::Role", "Properties": ROLE}}})


def role(kind, qualifier="shoal"):
    return f"arn:aws:iam::{ACCOUNT}:role/cdk-{qualifier}-{kind}-role-{ACCOUNT}-{REGION}"


@pytest.fixture(scope="module")
def account(aws, tmp_path_factory):
    """Account with both bootstraps, an app's stack `theirs`, and a role that any identity of the account may assume."""
    folder, found = tmp_path_factory.mktemp("prepared"), Account()
    log, place = folder / "cdk.log", f"aws://{ACCOUNT}/{REGION}"
    cdk.run(["bootstrap", place], environment={}, assembly=folder / "assembly", log=log, root=folder)
    policies.provide(found, POLICIES)
    cdk.prepare(account=ACCOUNT, region=REGION, execution=policies.execution(found), environment={}, log=log)
    boto3.client("iam").create_role(
        RoleName="Admin", AssumeRolePolicyDocument=json.dumps(ROLE["AssumeRolePolicyDocument"])
    )
    stack = {"StackName": "theirs", "TemplateBody": json.dumps(EMPTY), "RoleARN": role("cfn-exec", "hnb659fds")}
    boto3.client("cloudformation").create_stack(**stack)
    boto3.client("cloudformation").get_waiter("stack_create_complete").wait(StackName="theirs")
    return found


@pytest.fixture(scope="module")
def person(account):
    return session_with(document(USER))


def assumed(who, arn):
    found = who.client("sts").assume_role(RoleArn=arn, RoleSessionName="person")["Credentials"]
    return boto3.Session(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], region_name=REGION)


def refused(ask):
    try:
        ask()
    except ClientError as error:
        return error.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException")
    return False


@pytest.mark.slow
def test_a_person_can_assume_only_two_roles_of_the_cdk(account, person):
    roles = [each["Arn"] for each in account.items("iam", "list_roles", "Roles")]
    assert len(roles) > 10
    got = {arn for arn in roles if not refused(lambda arn=arn: assumed(person, arn))}
    assert got == {role("deploy"), role("file-publishing")}


def test_no_action_of_iam_or_sts_changes_or_assumes_another_role():
    policy, who = [statements(document(USER))], f"arn:aws:iam::{ACCOUNT}:user/person"
    others = [role("cfn-exec", "hnb659fds"), role("deploy", "hnb659fds"), f"arn:aws:iam::{ACCOUNT}:role/Admin", who]
    verbs = [
        f"{name}:{verb}" for name in ("iam", "sts") for verb in boto3.client(name).meta.service_model.operation_names
    ]
    may = {
        verb
        for verb in [*verbs, "iam:PassRole"]
        for arn in others
        if is_allowed(Check(who, verb, arn, "allowed"), policy)
    }
    assert len(verbs) > 150
    assert {verb for verb in may if not verb.startswith(("iam:List", "iam:GetPolicy"))} == set()


def test_a_role_of_another_account_is_refused():
    policy, who = [statements(document(USER))], f"arn:aws:iam::{ACCOUNT}:user/person"
    for number, allowed in ((ACCOUNT, True), ("111122223333", False)):
        arn = role("deploy").replace(ACCOUNT, number)
        assert is_allowed(Check(who, "sts:AssumeRole", arn, "allowed"), policy) is allowed


@pytest.mark.soak
def test_the_deployment_role_cannot_use_another_stacks_role(person):
    """A stack keeps its role for later operations of any identity."""
    deploys = assumed(person, role("deploy")).client("cloudformation")
    capable = {"Capabilities": ["CAPABILITY_IAM"], "TemplateBody": MORE}
    assert refused(lambda: deploys.update_stack(StackName="theirs", **capable))
    assert refused(lambda: deploys.create_change_set(StackName="theirs", ChangeSetName="x", **capable))
    assert refused(lambda: deploys.delete_stack(StackName="theirs"))
    assert refused(lambda: deploys.create_stack(StackName="Shoal-x", RoleARN=role("cfn-exec", "hnb659fds"), **capable))
    made = {"StackName": "Shoal-x", "TemplateBody": json.dumps(EMPTY), "RoleARN": role("cfn-exec")}
    deploys.create_stack(**made)
    boto3.client("cloudformation").delete_stack(StackName="Shoal-x")
