"""Creates Shoal's policies, and the role as which an acceptance run calls Shoal.

The role is removed after the run. The policies remain, as after `shoal deploy`, because they cost nothing.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from common.errors import ShoalError
from infra import policies
from shoal.aws.account import Account
from shoal.aws.policies import arn, present, provide

ROLE = "ShoalAcceptance"
TAG = "shoal:acceptance"
"""Tag of a role that an acceptance run created."""
_SESSION_SECONDS = 3600
"""Maximum duration of a session that a role requests for another role. AWS does not allow more."""
_RENEWED_BEFORE = timedelta(minutes=50)
_TRIES, _BETWEEN = 12, 5.0
"""Number of attempts to assume the new role, and seconds between them, because it takes seconds until all services know
the role."""


class Setup:
    """Policies and role of an acceptance run, in the administrator's account."""

    def __init__(self, account: Account) -> None:
        self._account, self._iam = account, account.client("iam")
        self.number = account.number()
        self._session: Mapping[str, Any] | None = None

    def create(self) -> str:
        """Create the policies and the role. Return a sentence for the report.

        Raises ShoalError if a policy in the account differs from the policy in this version of Shoal, or if a role with
        this name exists that no acceptance run created.
        """
        for name in policies.POLICIES:
            if present(self._account, name) not in (None, policies.document(name)):
                raise ShoalError(
                    f"the account's policy {name} differs from the policy in this version of Shoal; update the "
                    "account's policy, or delete it"
                )
        provide(self._account, policies.POLICIES)
        trust = {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{self.number}:root"},
            "Action": "sts:AssumeRole",
        }
        try:
            self._iam.create_role(
                RoleName=ROLE,
                AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
                Tags=[{"Key": TAG, "Value": "true"}],
            )
        except self._iam.exceptions.EntityAlreadyExistsException:
            if not self._has_own_role():  # with the tag, a killed run left the role
                raise ShoalError(
                    f"the account's role {ROLE} does not have the tag {TAG}, so no acceptance run created it; "
                    "delete it if nobody uses it"
                ) from None
        self._iam.attach_role_policy(RoleName=ROLE, PolicyArn=arn(self._account, policies.USER))
        return f"the role {ROLE} has the policy {policies.USER}"

    def environment(self) -> dict[str, str]:
        """Return the environment variables with credentials for the role, which are valid for at least 50 minutes."""
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
        assume = partial(
            self._account.client("sts").assume_role,
            RoleArn=f"arn:aws:iam::{self.number}:role/{ROLE}",
            RoleSessionName=ROLE,
            DurationSeconds=_SESSION_SECONDS,
        )
        for _ in range(_TRIES):
            with suppress(ClientError):
                return dict(assume()["Credentials"])
            time.sleep(_BETWEEN)
        return dict(assume()["Credentials"])

    def _has_own_role(self) -> bool:
        """Return whether the account has the role and an acceptance run created it."""
        try:
            role = self._iam.get_role(RoleName=ROLE)["Role"]
        except self._iam.exceptions.NoSuchEntityException:
            return False
        return any(tag["Key"] == TAG for tag in role.get("Tags", ()))

    def remove(self) -> list[str]:
        """Remove the role if an acceptance run created it. Return a sentence for each resource that is left, with the
        reason."""
        gone = self._iam.exceptions.NoSuchEntityException
        try:
            if self._has_own_role():
                with suppress(gone):
                    self._iam.detach_role_policy(RoleName=ROLE, PolicyArn=arn(self._account, policies.USER))
                with suppress(gone):
                    self._iam.delete_role(RoleName=ROLE)
        except ClientError as error:
            return [f"role {ROLE}: {error.response['Error']['Message']}"]
        return []
