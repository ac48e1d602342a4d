"""The instance metadata service of emulated nodes, with what AWS says to spot nodes alone: each has an address of its
own below `/_metadata/`, which is in its environment."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from embedded.faults.file import Faults
from embedded.faults.kinds import RebalanceAdvice, SpotInterruption
from embedded.seams import routing

_PATH = re.compile(r"/_metadata/(i-[0-9a-f]{8,17})/latest/(.+)")
_TOKEN = b"a-token-of-the-embedded-aws"
_NOTICE = timedelta(minutes=2)


def endpoint(base: str, instance: str) -> str:
    """The address of an instance's own service."""
    return f"{base.rstrip('/')}/_metadata/{instance}"


def install(faults: Faults) -> None:
    """Answer requests of nodes before all others."""
    serve = routing.serve.now

    async def served(scope: Any, receive: Any, send: Any) -> None:
        found = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await serve(scope, receive, send)
            return
        status, body = _answer(faults, found[1], found[2], scope)
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": body})

    routing.serve.put(served)


def _answer(faults: Faults, instance: str, path: str, scope: Any) -> tuple[int, bytes]:
    headers = dict(scope["headers"])
    if path == "api/token":
        lasts = headers.get(b"x-aws-ec2-metadata-token-ttl-seconds", b"")
        return (200, _TOKEN) if scope["method"] == "PUT" and lasts.isdigit() else (400, b"")
    if headers.get(b"x-aws-ec2-metadata-token") != _TOKEN:
        return 401, b""
    now = datetime.now(UTC)
    if path == "meta-data/spot/instance-action" and faults.find(SpotInterruption, instance=instance):
        return 200, json.dumps({"action": "terminate", "time": f"{now + _NOTICE:%Y-%m-%dT%H:%M:%SZ}"}).encode()
    if path == "meta-data/events/recommendations/rebalance" and faults.find(RebalanceAdvice, instance=instance):
        return 200, json.dumps({"noticeTime": f"{now:%Y-%m-%dT%H:%M:%SZ}"}).encode()
    return 404, b""
