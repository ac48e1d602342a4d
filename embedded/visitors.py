"""Whom the emulator serves: clients of AWS on this machine, and no web page that a browser shows here.

What is asked of it runs as the user (scripts of nodes, commands), and it knows no passwords. Easy to get wrong is to
look at where a request comes from: a page of anywhere asks from this machine, too. A browser gives itself away by the
headers that it adds; and a page whose name was made to lead to the loopback interface by the name of its host.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from embedded.seams import front

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_OF_BROWSERS = (b"origin", b"sec-fetch-site")
_HOSTS = ("127.0.0.1", "localhost")
_REFUSAL = b"The embedded AWS serves clients on this machine by the names 127.0.0.1 and localhost, and no web page.\n"


def install() -> None:
    """Look at each request before it is served."""
    serve = front.serve.now

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or is_welcome(scope["headers"]):
            await serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": _REFUSAL})

    front.serve.put(guarded)


def is_welcome(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request with these headers, their names in small letters, is a client's on this machine."""
    found = list(headers)
    hosts = [value for name, value in found if name == b"host"]
    return len(hosts) == 1 and _is_here(hosts[0]) and not any(name in _OF_BROWSERS for name, _ in found)


def _is_here(host: bytes) -> bool:
    """Whether a host, with its port or without, is this machine; S3 takes a bucket's name before it."""
    name = host.decode("latin-1").lower().partition(":")[0]
    return any(name == here or name.endswith(f".{here}") for here in _HOSTS)
