"""Instance metadata service of emulated nodes: the credentials of a node's role, and notices for spot nodes.

Each node has its own address of the service, below `/_metadata/`. An environment variable of the node contains this
address.
"""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import SpotInterruption
from shoal_local_aws.permissions import identities
from shoal_local_aws.permissions.checks import is_allowed
from shoal_local_aws.seams import requests, routing, storage

_PATH = re.compile(r"/_metadata/(i-[0-9a-f]{8,17}|j-[0-9A-Z]{8,20})/latest/(.+)")
_CREDENTIALS = "meta-data/iam/security-credentials/"
MOUNTS = "/_mounts/"
"""Prefix of the request paths that end with MACHINE/FILE-SYSTEM. The response is the reason why EFS refuses the mount,
or empty."""
_MOUNT = re.compile(MOUNTS + r"([ij]-[0-9a-zA-Z]{8,20})/(fs-[0-9a-zA-Z_-]+)")
# Rule: These actions allow a mount, through a mount target. Source: "Using IAM to control access to file systems".
_CLIENT = tuple(f"elasticfilesystem:Client{action}" for action in ("Mount", "Write", "RootAccess"))
_TOKEN = b"a-token-of-the-embedded-aws"
# Rule: A notice precedes an interruption by two minutes. Source: "Spot Instance interruption notices".
_NOTICE = timedelta(minutes=2)
_SESSION = timedelta(hours=6)


_roles: dict[str, str] = {}
"""Name of the role of each machine, by machine name."""


def begin(machine: str, profile: str) -> str:
    """Start the metadata service for a new machine with an instance profile (name or ARN). Return its address."""
    _roles[machine] = identities.role_of_profile(profile)
    return f"{os.environ['AWS_ENDPOINT_URL'].rstrip('/')}/_metadata/{machine}"


def role_of(machine: str) -> str:
    """Return the name of a machine's role, or an empty string without a role."""
    return _roles.get(machine, "")


def install(faults: Faults) -> None:
    """Make the emulator answer requests to the metadata service before it dispatches other requests."""
    serve = routing.serve.now

    async def served(scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if found := _PATH.fullmatch(path):
            status, body = _answer(faults, found[1], found[2], scope)
        elif found := _MOUNT.fullmatch(path):
            status, body = 200, _refusal(role_of(found[1]), found[1], found[2]).encode()
        else:
            await serve(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": body})

    routing.serve.put(served)


def _refusal(role: str, machine: str, file_system: str) -> str:
    region = storage.region_of(file_system)
    if region is None:
        return f"file system {file_system} has no mount target"
    arn = f"arn:aws:elasticfilesystem:{region}:{requests.account()}:file-system/{file_system}"
    if is_allowed(role, machine, _CLIENT, arn, {"elasticfilesystem:AccessedViaMountTarget": "true"}):
        return ""
    return f"access denied by server while mounting {file_system}"


def _answer(faults: Faults, instance: str, path: str, scope: Any) -> tuple[int, bytes]:
    headers = dict(scope["headers"])
    # Belief: A token needs PUT and a lifetime, and requests need a token. No check: it takes an instance.
    if path == "api/token":
        lasts = headers.get(b"x-aws-ec2-metadata-token-ttl-seconds", b"")
        return (200, _TOKEN) if scope["method"] == "PUT" and lasts.isdigit() else (400, b"")
    if headers.get(b"x-aws-ec2-metadata-token") != _TOKEN:
        return 401, b""
    if path == "meta-data/spot/instance-action" and faults.find(SpotInterruption, instance=instance):
        end = datetime.now(UTC) + _NOTICE
        return 200, json.dumps({"action": "terminate", "time": f"{end:%Y-%m-%dT%H:%M:%SZ}"}).encode()
    if path.startswith(_CREDENTIALS) and _roles.get(instance):
        return _of_role(instance, path.removeprefix(_CREDENTIALS))
    return 404, b""


def _of_role(machine: str, asked: str) -> tuple[int, bytes]:
    """Return the status and the body of the response about a machine's role: its name, or its credentials."""
    role = _roles[machine]
    if asked != role:
        return (404, b"") if asked else (200, role.encode())
    made = identities.session_of(role, machine, _SESSION)
    assert made.expires is not None
    answer = {
        "AccessKeyId": made.key,
        "SecretAccessKey": made.secret,
        "Token": made.token,
        "Expiration": f"{made.expires:%Y-%m-%dT%H:%M:%SZ}",
    }
    return 200, json.dumps(answer).encode()
