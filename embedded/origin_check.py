"""Checks that a request comes from an AWS client on this machine, and not from a web page in a browser.

The emulator runs scripts and commands as the user, and has no passwords. Do not check the sender's address, because a
web page's requests come from this machine as well. Browsers are recognised by the headers that they add; a page whose
domain name resolves to the loopback interface is recognised by the Host header.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from embedded.seams import routing

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_OF_BROWSERS = (b"origin", b"sec-fetch-site")
_HOSTS = ("127.0.0.1", "localhost")
_BY_TLS = (b"x-forwarded-proto", b"https")
"""On AWS the same clients use TLS, which policies of buckets ask for."""
_REFUSAL = b"The embedded AWS serves clients on this machine by the names 127.0.0.1 and localhost, but no web pages.\n"


def install() -> None:
    """Check each request before it is served."""
    serve = routing.serve.now

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await serve(scope, receive, send)
        elif is_allowed(scope["headers"]):
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


def _is_here(host: bytes) -> bool:
    """Whether a host, with or without its port, is this machine; with S3 a bucket's name may precede it."""
    name = host.decode("latin-1").lower().partition(":")[0]
    return any(name == here or name.endswith(f".{here}") for here in _HOSTS)
