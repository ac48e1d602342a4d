"""The server, which receives requests and calls the handler of the requested service."""

from collections.abc import Awaitable, Callable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, PatchPoint, Record

_app, _router, _actions = (MinistackModule(name) for name in ("app", "core.router", "core.iam_actions"))

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
_action: Callable[..., str | None] = _actions.take("extract_iam_action")
_refused: Callable[..., Answer] = _actions.take("access_denied_response")
_patterns: dict[str, Record] = _router.take("SERVICE_PATTERNS")
_namespaces: dict[str, str] = _actions.take("SERVICE_TO_IAM_NAMESPACE")
_account: Callable[[], str] = MinistackModule("core.responses").take("get_account_id")
_handlers: dict[str, Handler] = _app.take("SERVICE_HANDLERS")


_S3_OPERATIONS = {
    "GET ListAllMyBuckets": "ListBuckets",
    "GET ListBucket": "ListObjectsV2",
    "GET ListBucketVersions": "ListObjectVersions",
    "HEAD GetObject": "HeadObject",
    "HEAD ListBucket": "HeadBucket",
}
"""Operations of S3, by method and name of the action in IAM, if they have different names."""


def service_and_operation(method: str, path: str, headers: Record, body: bytes, query: Record) -> tuple[str, str]:
    """Return the service and the operation of a request, which is empty if it is unknown."""
    parameters = _routing(method, path, headers, body, query)
    service = _service(method, path, headers, parameters)
    name = (_action(service, method, path, headers, body, parameters) or "").rpartition(":")[2]
    return service, _S3_OPERATIONS.get(f"{method} {name}", name) if service == "s3" else name


def refusal(
    service: str, operation: str, headers: Record, code: str = "", message: str = "", status: int | None = None
) -> Answer:
    """Return an error response in the format of the service's protocol. Without a code, it is a denial."""
    caller, action = f"arn:aws:iam::{_account()}:user/test", f"{service}:{operation}"
    if not message:
        denied = f"User: {caller} is not authorized to perform: {action}"
        message = "You are not authorized to perform this operation." if service == "ec2" else denied
    found, more, body = _refused(service, action, caller, "", error_code=code, message=message, headers=headers)
    return status or found, more, body


def add_service(name: str, target: str, handler: Handler) -> None:
    """Add a service that ministack lacks. The handler gets all requests with a target that begins with `target`."""
    _patterns[name] = {"target_prefixes": [target]}
    _handlers[name] = handler
    _namespaces[name] = name
