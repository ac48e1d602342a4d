"""The server: how a request comes in, which service it is for, and who answers it."""

from collections.abc import Awaitable, Callable
from typing import Any

from embedded.seams.lookup import MinistackModule, Record, Seam

_app, _router = MinistackModule("app"), MinistackModule("core.router")

Serve = Callable[[Any, Any, Any], Awaitable[None]]
Dispatch = Callable[[str, str, Record, bytes, Record, str], Awaitable[Any]]
Handler = Callable[[str, str, Record, bytes, Record], Awaitable[Any]]

main: Callable[[], None] = _app.take("main")
"""Serve until a signal."""

serve: Seam[Serve] = Seam("app", _app)
"""The application of ASGI: its scope, and its functions to receive and to send."""

dispatch: Seam[Dispatch] = Seam("_dispatch_service_request", _app)
"""What answers a request: its method, path, headers, body, query and id."""

access_key: Callable[[Record, Record], str] = _router.take("extract_access_key_id")
"""The access key by which a request is signed, from its headers and its query."""

_routing: Callable[[str, str, Record, bytes, Record], Record] = _app.take("_routing_params")
_service: Callable[[str, str, Record, Record], str] = _app.take("detect_service")
_event: Callable[[str, str, str, Record, Record], str] = _app.take("_ct_event_name")
_patterns: dict[str, Record] = _router.take("SERVICE_PATTERNS")
_handlers: dict[str, Handler] = _app.take("SERVICE_HANDLERS")


def service_and_operation(method: str, path: str, headers: Record, body: bytes, query: Record) -> tuple[str, str]:
    """The service that a request is for, and the operation, by the name that CloudTrail would have for it."""
    parameters = _routing(method, path, headers, body, query)
    service = _service(method, path, headers, parameters)
    return service, _event(service, method, path, headers, parameters)


def add_service(name: str, target: str, handler: Handler) -> None:
    """Add a service that ministack does not have: requests whose target begins so go to its handler."""
    _patterns[name] = {"target_prefixes": [target]}
    _handlers[name] = handler
