"""Shoal's policies in an account are created once, and updated if they are from another version."""

import json

import boto3
import pytest

from infra.policies import BOUNDARY, EXECUTION, document
from shoal.aws import policies
from shoal.aws.account import Account


@pytest.fixture
def account(aws):
    found = Account()
    yield found
    for name in (*EXECUTION, BOUNDARY):
        arn = policies.arn(found, name)
        iam = found.client("iam")
        for version in iam.list_policy_versions(PolicyArn=arn)["Versions"]:
            if not version["IsDefaultVersion"]:
                iam.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])
        iam.delete_policy(PolicyArn=arn)


def versions(arn):
    """Return name, default and document of each version."""
    iam = boto3.client("iam")
    names = [each["VersionId"] for each in iam.list_policy_versions(PolicyArn=arn)["Versions"]]
    made = [iam.get_policy_version(PolicyArn=arn, VersionId=name)["PolicyVersion"] for name in names]
    return [(each["VersionId"], each["IsDefaultVersion"], each["Document"]) for each in made]


def test_policies_are_created_once_and_the_boundary_is_found(account):
    assert policies.boundary(account) is None
    policies.provide(account)
    policies.provide(account)
    assert policies.boundary(account) == policies.arn(account, BOUNDARY)
    for name in (*EXECUTION, BOUNDARY):
        assert versions(policies.arn(account, name)) == [("v1", True, document(name))]


@pytest.mark.parametrize(("default", "removed"), [("v1", "v2"), ("v5", "v1")])
def test_a_new_version_of_a_policy_replaces_the_oldest_of_five_that_is_not_the_default(account, default, removed):
    policies.provide(account)
    iam, arn = account.client("iam"), policies.arn(account, EXECUTION[0])
    iam.delete_policy(PolicyArn=arn)
    statements = ({"Effect": "Allow", "Action": f"s3:Get{number}", "Resource": "*"} for number in range(5))
    first, *later = (json.dumps({"Version": "2012-10-17", "Statement": [each]}) for each in statements)
    iam.create_policy(PolicyName=EXECUTION[0], PolicyDocument=first)
    for number, body in enumerate(later, 2):
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=body, SetAsDefault=default == f"v{number}")
    policies.provide(account)
    found = versions(arn)
    assert {name for name, _, _ in found} == {*(f"v{number}" for number in range(1, 7))} - {removed}
    assert [each for _, default, each in found if default] == [document(EXECUTION[0])]
