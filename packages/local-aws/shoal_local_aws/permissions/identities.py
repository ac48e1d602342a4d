"""The user of the emulated account, and the sessions of its roles. Nobody acts as the account's root."""

import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from shoal_local_aws.permissions.credentials import USER, Credentials
from shoal_local_aws.seams import identity, requests


def add_user(path: Path) -> None:
    """Add the user that `Credentials.write` describes, and remove that file."""
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
    """Add those of AWS's own policies that ministack lacks."""
    folder = Path(__file__).parent / "managed"
    for path in folder.rglob("*.yaml"):
        document = yaml.safe_load(path.read_text())
        record = identity.managed_policy(str(path.relative_to(folder).with_suffix("")), json.dumps(document))
        identity.managed_policies[record["Arn"]] = record


def session_of(role: str, name: str, lasts: timedelta | None = None) -> Credentials:
    """Credentials of a new session of a role, by the role's name or ARN, as `name`. That of a service does not end."""
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
    """The credentials with which the current request is signed."""
    found = identity.credential(identity.verified_key.get())
    return Credentials(key=found.access_key_id, secret=found.secret_access_key, token=found.session_token or "")


def role_of_profile(profile: str) -> str:
    """The name of the role in an instance profile, by the profile's name or ARN; empty where there is none."""
    found = identity.instance_profiles.get(profile.rpartition("/")[2]) or {}
    return next(iter(found.get("Roles") or ()), "")
