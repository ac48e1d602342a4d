"""Refuses requests from web pages, and requests to ministack's own paths, which AWS does not have.

The emulator runs scripts and commands as the user, and has no passwords. The sender's address proves nothing, because
the requests of a web page in a browser also come from this machine. Browsers are recognised by the headers that they
add. A web page with a domain name that resolves to the loopback interface is recognised by the Host header. Requests to
ministack's own paths have no signature, so permissions do not protect them, and one of these paths deletes everything.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from shoal_local_aws.seams import routing

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_BROWSER_HEADERS = (b"origin", b"sec-fetch-site")
_HOSTS = ("127.0.0.1", "localhost")
_TLS_HEADER = (b"x-forwarded-proto", b"https")
"""Header that marks a request as sent through TLS, because bucket policies require TLS, as on AWS."""
_MINISTACK = ("/_ministack/", "/_localstack/")
_PERMITTED = ("/_ministack/health", "/_ministack/cfn-response/", "/_ministack/cfn-signal/")
"""Permitted paths of ministack: its health, and responses with a token from CloudFormation."""
_REFUSAL = (
    b"The embedded AWS serves only AWS clients on this machine, under the names 127.0.0.1 and localhost. It refuses "
    b"web pages and requests to ministack's own paths.\n"
)


def install() -> None:
    """Make the emulator check each request before it is served."""
    serve = routing.serve.now

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await serve(scope, receive, send)
        elif is_allowed(scope["headers"]) and is_of_aws(scope.get("path", "")):
            await serve({**scope, "headers": [*scope["headers"], _TLS_HEADER]}, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": _REFUSAL})

    routing.serve.put(guarded)


def is_allowed(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether the headers (names in lower case) show that a request comes from a program, not from a web
    page."""
    found = list(headers)
    hosts = [value for name, value in found if name == b"host"]
    return len(hosts) == 1 and _is_here(hosts[0]) and not any(name in _BROWSER_HEADERS for name, _ in found)


def is_of_aws(path: str) -> bool:
    """Return whether a path is one of AWS or a permitted path of ministack."""
    return path.startswith(_PERMITTED) or not path.startswith(_MINISTACK)


def _is_here(host: bytes) -> bool:
    """Return whether a Host header, with or without port, names this machine. For S3, a bucket name may precede it."""
    name = host.decode("latin-1").lower().partition(":")[0]
    return any(name == here or name.endswith(f".{here}") for here in _HOSTS)
