"""The server: it receives a request, finds its service, and calls the service's handler."""

from collections.abc import Awaitable, Callable
from typing import Any

from shoal_local_aws.seams.lookup import MinistackModule, Record, Seam

_app, _router = MinistackModule("app"), MinistackModule("core.router")

Serve = Callable[[Any, Any, Any], Awaitable[None]]
Dispatch = Callable[[str, str, Record, bytes, Record, str], Awaitable[Any]]
Handler = Callable[[str, str, Record, bytes, Record], Awaitable[Any]]

main: Callable[[], None] = _app.take("main")
"""Run the server until a signal."""

serve: Seam[Serve] = Seam("app", _app)
"""The ASGI application: scope, and the functions to receive and to send."""

dispatch: Seam[Dispatch] = Seam("_dispatch_service_request", _app)
"""Answers a request: its method, path, headers, body, query and id."""

access_key: Callable[[Record, Record], str] = _router.take("extract_access_key_id")
"""The access key that signs a request, from its headers and its query."""

_routing: Callable[[str, str, Record, bytes, Record], Record] = _app.take("_routing_params")
_service: Callable[[str, str, Record, Record], str] = _app.take("detect_service")
_event: Callable[[str, str, str, Record, Record], str] = _app.take("_ct_event_name")
_patterns: dict[str, Record] = _router.take("SERVICE_PATTERNS")
_namespaces: dict[str, str] = MinistackModule("core.iam_actions").take("SERVICE_TO_IAM_NAMESPACE")
_handlers: dict[str, Handler] = _app.take("SERVICE_HANDLERS")


def service_and_operation(method: str, path: str, headers: Record, body: bytes, query: Record) -> tuple[str, str]:
    """The service and the operation of a request; the operation has its name in CloudTrail."""
    parameters = _routing(method, path, headers, body, query)
    service = _service(method, path, headers, parameters)
    return service, _event(service, method, path, headers, parameters)


def add_service(name: str, target: str, handler: Handler) -> None:
    """Add a service that ministack does not have: its handler gets requests whose target has this prefix."""
    _patterns[name] = {"target_prefixes": [target]}
    _handlers[name] = handler
    _namespaces[name] = name
