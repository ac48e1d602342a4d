"""The IAM user of the emulated account, and the sessions of its roles. No client can act as the account's root."""

import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from shoal_local_aws.permissions.credentials import USER, Credentials
from shoal_local_aws.seams import identity, requests


def add_user(path: Path) -> None:
    """Add the user with the keys in the file that `Credentials.write` has written, and remove the file."""
    asked = json.loads(path.read_text())
    path.unlink()
    created = requests.now()
    identity.users[USER] = {
        "UserName": USER,
        "Arn": f"arn:aws:iam::{requests.account()}:user/{USER}",
        "UserId": f"AIDA{secrets.token_hex(8).upper()}",
        "CreateDate": created,
        "Path": "/",
        "PermissionsBoundary": "",
        "AttachedPolicies": ["arn:aws:iam::aws:policy/AdministratorAccess"],
        "Tags": [],
    }
    identity.access_keys[asked["key"]] = {
        "UserName": USER,
        "AccessKeyId": asked["key"],
        "SecretAccessKey": asked["secret"],
        "Status": "Active",
        "CreateDate": created,
    }


def add_managed_policies() -> None:
    """Add AWS managed policies that ministack lacks or does not date."""
    folder = Path(__file__).parent / "managed"
    for path in folder.rglob("*.yaml"):
        document = yaml.safe_load(path.read_text())
        record = identity.managed_policy(str(path.relative_to(folder).with_suffix("")), json.dumps(document))
        identity.managed_policies[record["Arn"]] = record


def session_of(role: str, name: str, lasts: timedelta | None = None) -> Credentials:
    """Create a session `name` of a role (name or ARN), and return its credentials. Without `lasts`, it does not
    expire."""
    role = role.rpartition("/")[2]
    expires = datetime.now(UTC) + lasts if lasts else None
    made = Credentials(
        key=f"ASIA{secrets.token_hex(8).upper()}",
        secret=secrets.token_hex(20),
        token=secrets.token_hex(40),
        expires=expires,
    )
    identity.register_session(
        made.key,
        {
            "Arn": f"arn:aws:sts::{requests.account()}:assumed-role/{role}/{name}",
            "UserId": f"{identity.roles.get(role, {}).get('RoleId', role)}:{name}",
            "SecretAccessKey": made.secret,
            "SessionToken": made.token,
            "Expiration": expires and expires.timestamp(),
        },
    )
    return made


def caller() -> Credentials:
    """Return the credentials that signed the current request."""
    found = identity.credential(identity.verified_key.get())
    return Credentials(key=found.access_key_id, secret=found.secret_access_key, token=found.session_token or "")


def role_of_profile(profile: str) -> str:
    """Return the name of the role in an instance profile (name or ARN), or an empty string without a role."""
    found = identity.instance_profiles.get(profile.rpartition("/")[2]) or {}
    return next(iter(found.get("Roles") or ()), "")
