"""The server, which receives requests and calls the handler of the requested service."""

from collections.abc import Awaitable, Callable
from typing import Any

from shoal_local_aws.seams.lookup import MinistackModule, PatchPoint, Record

_app, _router = MinistackModule("app"), MinistackModule("core.router")

Serve = Callable[[Any, Any, Any], Awaitable[None]]
Dispatch = Callable[[str, str, Record, bytes, Record, str], Awaitable[Any]]
Handler = Callable[[str, str, Record, bytes, Record], Awaitable[Any]]

main: Callable[[], None] = _app.take("main")
"""Runs the server until the process receives a signal to stop."""

serve: PatchPoint[Serve] = PatchPoint("app", _app)
"""ASGI application. Arguments: scope, function to receive, function to send."""

dispatch: PatchPoint[Dispatch] = PatchPoint("_dispatch_service_request", _app)
"""Answers a request. Arguments: method, path, headers, body, query, id."""

access_key: Callable[[Record, Record], str] = _router.take("extract_access_key_id")
"""Returns the access key that signed a request, from its headers and query."""

_routing: Callable[[str, str, Record, bytes, Record], Record] = _app.take("_routing_params")
_service: Callable[[str, str, Record, Record], str] = _app.take("detect_service")
_event: Callable[[str, str, str, Record, Record], str] = _app.take("_ct_event_name")
_patterns: dict[str, Record] = _router.take("SERVICE_PATTERNS")
_namespaces: dict[str, str] = MinistackModule("core.iam_actions").take("SERVICE_TO_IAM_NAMESPACE")
_handlers: dict[str, Handler] = _app.take("SERVICE_HANDLERS")


def service_and_operation(method: str, path: str, headers: Record, body: bytes, query: Record) -> tuple[str, str]:
    """Return the service and the operation of a request. Operations are named as in CloudTrail."""
    parameters = _routing(method, path, headers, body, query)
    service = _service(method, path, headers, parameters)
    return service, _event(service, method, path, headers, parameters)


def add_service(name: str, target: str, handler: Handler) -> None:
    """Add a service that ministack lacks. The handler gets all requests with a target that begins with `target`."""
    _patterns[name] = {"target_prefixes": [target]}
    _handlers[name] = handler
    _namespaces[name] = name
