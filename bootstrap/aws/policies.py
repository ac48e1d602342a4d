"""Shoal's policies in an account: CloudFormation's, and the boundaries of roles."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bootstrap.aws.account import Account
from infra import policies

_MOST_VERSIONS = 5
"""Of a managed policy (IAM and AWS STS quotas)."""


_FOR_ROLES = tuple(name for name in policies.POLICIES if name != policies.USER)


def provide(account: Account, names: Sequence[str] = _FOR_ROLES) -> None:
    """Create the policies of these names, or make the present ones what they are in this version of Shoal."""
    iam = account.client("iam")
    for name in names:
        wanted = policies.document(name)
        try:
            iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(wanted))
        except iam.exceptions.EntityAlreadyExistsException:
            if present(account, name) != wanted:
                _renew(account, arn(account, name), wanted)


def present(account: Account, name: str) -> Mapping[str, Any] | None:
    """The document of the account's policy of this name; None without one."""
    iam, policy = account.client("iam"), arn(account, name)
    try:
        default = iam.get_policy(PolicyArn=policy)["Policy"]["DefaultVersionId"]
        found = iam.get_policy_version(PolicyArn=policy, VersionId=default)["PolicyVersion"]["Document"]
    except iam.exceptions.NoSuchEntityException:
        return None
    return cast("Mapping[str, Any]", found)


def _renew(account: Account, policy: str, wanted: Mapping[str, Any]) -> None:
    iam = account.client("iam")
    versions = list(account.items("iam", "list_policy_versions", "Versions", PolicyArn=policy))
    if len(versions) == _MOST_VERSIONS:
        others = (version for version in versions if not version["IsDefaultVersion"])
        oldest = min(others, key=lambda version: version["CreateDate"])
        iam.delete_policy_version(PolicyArn=policy, VersionId=oldest["VersionId"])
    iam.create_policy_version(PolicyArn=policy, PolicyDocument=json.dumps(wanted), SetAsDefault=True)


def arn(account: Account, name: str) -> str:
    return f"arn:aws:iam::{account.number()}:policy/{name}"


def execution(account: Account) -> list[str]:
    """The ARNs of the policies of CloudFormation's execution role."""
    return [arn(account, name) for name in policies.EXECUTION]


def boundary(account: Account) -> str | None:
    """The ARN of the account's ShoalBoundary, which CloudFormation then wants on all roles; None without one."""
    iam, policy = account.client("iam"), arn(account, policies.BOUNDARY)
    try:
        iam.get_policy(PolicyArn=policy)
    except iam.exceptions.NoSuchEntityException:
        return None
    return policy
