"""Shoal's IAM policies in an account: the policies of CloudFormation, and the permissions boundaries of roles."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from infra import policies
from shoal.aws.account import Account

_MAX_VERSIONS = 5
"""Maximum number of versions of a managed policy ("IAM and AWS STS quotas" in the IAM user guide)."""


_FOR_ROLES = tuple(name for name in policies.POLICIES if name != policies.USER)


def provide(account: Account, names: Sequence[str] = _FOR_ROLES) -> None:
    """Create the policies `names`. Existing policies are updated to the documents of this version of Shoal."""
    iam = account.client("iam")
    for name in names:
        document = policies.document(name)
        try:
            iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(document))
        except iam.exceptions.EntityAlreadyExistsException:
            if present(account, name) != document:
                _update(account, arn(account, name), document)


def present(account: Account, name: str) -> Mapping[str, Any] | None:
    """Return the policy document of an existing policy, or None if the policy does not exist."""
    iam, policy = account.client("iam"), arn(account, name)
    try:
        default = iam.get_policy(PolicyArn=policy)["Policy"]["DefaultVersionId"]
        document = iam.get_policy_version(PolicyArn=policy, VersionId=default)["PolicyVersion"]["Document"]
    except iam.exceptions.NoSuchEntityException:
        return None
    return cast("Mapping[str, Any]", document)


def _update(account: Account, policy: str, document: Mapping[str, Any]) -> None:
    iam = account.client("iam")
    versions = list(account.items("iam", "list_policy_versions", "Versions", PolicyArn=policy))
    if len(versions) == _MAX_VERSIONS:
        others = (version for version in versions if not version["IsDefaultVersion"])
        oldest = min(others, key=lambda version: version["CreateDate"])
        iam.delete_policy_version(PolicyArn=policy, VersionId=oldest["VersionId"])
    iam.create_policy_version(PolicyArn=policy, PolicyDocument=json.dumps(document), SetAsDefault=True)


def arn(account: Account, name: str) -> str:
    return f"arn:aws:iam::{account.number()}:policy/{name}"


def execution(account: Account) -> list[str]:
    """Return the ARNs of the policies for CloudFormation's execution role."""
    return [arn(account, name) for name in policies.EXECUTION]


def boundary(account: Account) -> str | None:
    """Return the ARN of the account's policy ShoalBoundary, or None if it does not exist. If it exists, CloudFormation
    can only create roles with this permissions boundary."""
    iam, policy = account.client("iam"), arn(account, policies.BOUNDARY)
    try:
        iam.get_policy(PolicyArn=policy)
    except iam.exceptions.NoSuchEntityException:
        return None
    return policy
