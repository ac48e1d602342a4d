"""Shoal's policies in an account are created once, and updated if they are from another version."""

import json
from unittest.mock import Mock

import boto3
import pytest

from bootstrap.aws import policies
from bootstrap.aws.account import Account
from infra.policies import BOUNDARY, EXECUTION, document


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


def test_a_policy_of_another_version_is_updated_even_with_five_versions(account):
    policies.provide(account)
    iam, arn = account.client("iam"), policies.arn(account, EXECUTION[0])
    for number in range(4):
        statement = {"Effect": "Allow", "Action": f"s3:Get{number}", "Resource": "*"}
        body = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=body, SetAsDefault=True)
    policies.provide(account)
    found = versions(arn)
    assert len(found) == 5
    assert [each for _, default, each in found if default] == [document(EXECUTION[0])]
    assert "v1" not in {name for name, _, _ in found}


def test_the_oldest_of_five_versions_makes_room_unless_it_is_the_default():
    versions = [{"VersionId": f"v{day}", "CreateDate": day, "IsDefaultVersion": day == 1} for day in (3, 1, 2, 5, 4)]
    account = Mock(**{"items.return_value": versions})
    policies._update(account, "arn", {})
    account.client().delete_policy_version.assert_called_once_with(PolicyArn="arn", VersionId="v2")
