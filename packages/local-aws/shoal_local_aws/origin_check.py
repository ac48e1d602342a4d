"""Checks that a request comes from an AWS client on this machine, and not from a web page in a browser, and that it is
one of AWS.

The emulator runs scripts and commands as the user, and has no passwords. Do not check the sender's address, because a
web page's requests come from this machine as well. Browsers are recognised by the headers that they add; a page whose
domain name resolves to the loopback interface is recognised by the Host header. ministack's own requests, of which one
deletes everything, have no signature that permissions could be checked by.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from shoal_local_aws.seams import routing

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_OF_BROWSERS = (b"origin", b"sec-fetch-site")
_HOSTS = ("127.0.0.1", "localhost")
_BY_TLS = (b"x-forwarded-proto", b"https")
"""On AWS the same clients use TLS, which policies of buckets ask for."""
_OWN = ("/_ministack/", "/_localstack/")
_OF_AWS = ("/_ministack/health", "/_ministack/cfn-response/", "/_ministack/cfn-signal/")
"""Of ministack's own requests: whether it has started, and those with a token that CloudFormation gave away."""
_REFUSAL = (
    b"The embedded AWS serves requests of AWS from clients on this machine, by the names 127.0.0.1 and localhost: "
    b"no web pages, and none of the emulator's own requests.\n"
)


def install() -> None:
    """Check each request before it is served."""
    serve = routing.serve.now

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await serve(scope, receive, send)
        elif is_allowed(scope["headers"]) and is_of_aws(scope.get("path", "")):
            await serve({**scope, "headers": [*scope["headers"], _BY_TLS]}, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": _REFUSAL})

    routing.serve.put(guarded)


def is_allowed(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request comes from a client on this machine, by its headers (names in lower case)."""
    found = list(headers)
    hosts = [value for name, value in found if name == b"host"]
    return len(hosts) == 1 and _is_here(hosts[0]) and not any(name in _OF_BROWSERS for name, _ in found)


def is_of_aws(path: str) -> bool:
    """Whether a request is one that AWS would have, by its path."""
    return path.startswith(_OF_AWS) or not path.startswith(_OWN)


def _is_here(host: bytes) -> bool:
    """Whether a host, with or without its port, is this machine; with S3 a bucket's name may precede it."""
    name = host.decode("latin-1").lower().partition(":")[0]
    return any(name == here or name.endswith(f".{here}") for here in _HOSTS)
