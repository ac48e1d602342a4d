"""Shoal's policies in an account: those of CloudFormation, and the permission boundaries of roles."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bootstrap.aws.account import Account
from infra import policies

_MAX_VERSIONS = 5
"""Maximum number of versions of a managed policy (IAM and AWS STS quotas)."""


_FOR_ROLES = tuple(name for name in policies.POLICIES if name != policies.USER)


def provide(account: Account, names: Sequence[str] = _FOR_ROLES) -> None:
    """Create these policies, or update existing ones to this version of Shoal."""
    iam = account.client("iam")
    for name in names:
        document = policies.document(name)
        try:
            iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(document))
        except iam.exceptions.EntityAlreadyExistsException:
            if present(account, name) != document:
                _update(account, arn(account, name), document)


def present(account: Account, name: str) -> Mapping[str, Any] | None:
    """Return the document of an existing policy, or None."""
    iam, policy = account.client("iam"), arn(account, name)
    try:
        default = iam.get_policy(PolicyArn=policy)["Policy"]["DefaultVersionId"]
        found = iam.get_policy_version(PolicyArn=policy, VersionId=default)["PolicyVersion"]["Document"]
    except iam.exceptions.NoSuchEntityException:
        return None
    return cast("Mapping[str, Any]", found)


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
    """Return the ARNs of the policies of CloudFormation's execution role."""
    return [arn(account, name) for name in policies.EXECUTION]


def boundary(account: Account) -> str | None:
    """Return the ARN of the account's ShoalBoundary, or None. CloudFormation requires an existing boundary on all
    roles."""
    iam, policy = account.client("iam"), arn(account, policies.BOUNDARY)
    try:
        iam.get_policy(PolicyArn=policy)
    except iam.exceptions.NoSuchEntityException:
        return None
    return policy
