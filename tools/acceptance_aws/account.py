"""What a run makes in the account besides its deployment: Shoal's policies, and a role with that of its users alone.

All of it has a tag, by which it is found again and removed. A policy of the same name that is there already is used,
where its document is the same, and stays.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import ClientError
from shoal_guard.sweep.account import read_tags

from bootstrap.aws.account import Account
from bootstrap.aws.policies import arn
from common.errors import ShoalError
from infra import policies

ROLE = "ShoalAcceptance"
TAG = "shoal:acceptance"
_VALUE = "made by tools.acceptance_aws"
_SESSION_SECONDS = 3600
"""The most that a role gives to whoever is a role already."""
_OF_THE_CDK = (*policies.EXECUTION, policies.TOOLKIT)
"""The policies that roles of `cdk bootstrap` have."""
_RENEWED_BEFORE = timedelta(minutes=50)
_TRIES, _BETWEEN = 12, 5.0
"""A new role is known everywhere after some seconds."""


class Setup:
    """The policies and the role, in the account of whoever runs this."""

    def __init__(self, account: Account) -> None:
        self._account, self._iam = account, account.client("iam")
        self.number = account.number()
        self._session: Mapping[str, Any] | None = None

    def make(self) -> str:
        """Create what is not there; returns what was created. Raises ShoalError where a policy differs from Shoal's."""
        made = [policy for policy in policies.POLICIES if self._make_policy(policy)]
        trust = {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{self.number}:root"},
            "Action": "sts:AssumeRole",
        }
        create = partial(
            self._iam.create_role,
            RoleName=ROLE,
            AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
            Tags=[{"Key": TAG, "Value": _VALUE}],
        )
        if _created(create):
            made.append(ROLE)
        self._iam.attach_role_policy(RoleName=ROLE, PolicyArn=arn(self._account, policies.USER))
        return f"created: {', '.join(made)}" if made else "all of it was there"

    def _make_policy(self, policy: str) -> bool:
        wanted = policies.document(policy)
        create = partial(
            self._iam.create_policy,
            PolicyName=policy,
            PolicyDocument=json.dumps(wanted),
            Tags=[{"Key": TAG, "Value": _VALUE}],
        )
        if _created(create):
            return True
        own = arn(self._account, policy)
        version = self._iam.get_policy(PolicyArn=own)["Policy"]["DefaultVersionId"]
        found = self._iam.get_policy_version(PolicyArn=own, VersionId=version)["PolicyVersion"]["Document"]
        if found != wanted:
            raise ShoalError(
                f"the account's policy {policy} is not Shoal's; make {own} what infra/policies has, or remove it"
            )
        return False

    def environment(self) -> dict[str, str]:
        """The variables of a session of the role, which lasts for most of an hour more."""
        if self._session is None or self._session["Expiration"] - datetime.now(UTC) < _RENEWED_BEFORE:
            self._session = self._assume()
        found = self._session
        return {
            "AWS_ACCESS_KEY_ID": found["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": found["SecretAccessKey"],
            "AWS_SESSION_TOKEN": found["SessionToken"],
            "AWS_CREDENTIAL_EXPIRATION": found["Expiration"].isoformat(),
        }

    def _assume(self) -> Mapping[str, Any]:
        sts = self._account.client("sts")
        assume = partial(
            sts.assume_role,
            RoleArn=f"arn:aws:iam::{self.number}:role/{ROLE}",
            RoleSessionName=ROLE,
            DurationSeconds=_SESSION_SECONDS,
        )
        for _ in range(_TRIES):
            with suppress(ClientError):
                return dict(assume()["Credentials"])
            time.sleep(_BETWEEN)
        return dict(assume()["Credentials"])

    def remove(self) -> tuple[list[str], list[str]]:
        """Remove what has the tag; returns what is left, with the reasons, and what stays: what the CDK's role has."""
        left: list[str] = []
        stays: list[str] = []
        for what, remove in self._made():
            try:
                remove()
            except ClientError as error:
                code = error.response["Error"]["Code"]
                used = code == "DeleteConflict" and what.removeprefix("policy ") in _OF_THE_CDK
                (stays if used else left).append(f"{what}: {error.response['Error']['Message']}")
        return left, stays

    def _made(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """What has the tag, in the order in which it can be removed, with what removes it."""
        items, iam = self._account.items, self._iam
        roles = {each["RoleName"] for each in items("iam", "list_roles", "Roles")}
        if ROLE in roles and TAG in read_tags(iam.list_role_tags(RoleName=ROLE)["Tags"]):
            for each in items("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=ROLE):
                iam.detach_role_policy(RoleName=ROLE, PolicyArn=each["PolicyArn"])
            yield f"role {ROLE}", partial(iam.delete_role, RoleName=ROLE)
        local = items("iam", "list_policies", "Policies", Scope="Local")
        for name, found in {each["PolicyName"]: each["Arn"] for each in local}.items():
            if name in policies.POLICIES and TAG in read_tags(iam.list_policy_tags(PolicyArn=found)["Tags"]):
                yield f"policy {name}", partial(iam.delete_policy, PolicyArn=found)


def _created(create: Callable[..., Any]) -> bool:
    """Whether this has created something that was not there."""
    try:
        create()
    except ClientError as error:
        if error.response["Error"]["Code"] != "EntityAlreadyExists":
            raise
        return False
    return True
