"""Calls emulated services over HTTP, and builds responses.

Do not call a service on the thread of the event loop, because the same event loop must answer the call. Use clients
only on background threads and in CloudFormation handlers, which have their own threads.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any

import boto3
import botocore.session

from shoal_local_aws.permissions.credentials import Credentials
from shoal_local_aws.seams import requests
from shoal_local_aws.seams.lookup import Answer as Answer
from shoal_local_aws.seams.lookup import Record as Record

Operation = Callable[[Record], Answer]
OWN = "x-embedded-aws"
"""Header that marks requests from the emulator to itself."""
_acting: ContextVar[Credentials] = ContextVar("acting")
_CLIENTS = 256
_making = threading.Lock()


class RefusedError(Exception):
    """A service refuses a request with an AWS error code and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def acting_as(credentials: Credentials) -> Iterator[None]:
    """Make `client` use these credentials until the end of the `with` block."""
    before = _acting.set(credentials)
    try:
        yield
    finally:
        _acting.reset(before)


def acting() -> Credentials | None:
    """Return the credentials of the current `acting_as` block, or None outside of such a block."""
    return _acting.get(None)


def client(service: str) -> Any:
    """Return the boto3 client of a service in the region of the current request. It uses the credentials of the current
    `acting_as` block, so call it only inside of such a block."""
    return _client(service, _acting.get(), requests.region())


@lru_cache(_CLIENTS)
def _client(service: str, own: Credentials, region: str) -> Any:
    """Create a client. The result is cached, because each boto3 session loads the service models again."""
    with _making:  # clients are thread-safe, but creating them is not
        core = botocore.session.get_session()
        core.register_component("data_loader", _loader())
        session = boto3.Session(
            aws_access_key_id=own.key,
            aws_secret_access_key=own.secret,
            aws_session_token=own.token or None,
            region_name=region,
            botocore_session=core,
        )
        made = session.client(service)  # type: ignore[call-overload]
    made.meta.events.register("before-sign", _mark)
    return made


@cache
def _loader() -> Any:
    return botocore.session.get_session().get_component("data_loader")


def _mark(request: Any, **_: Any) -> None:
    """Mark a request as the emulator's own."""
    request.headers[OWN] = "yes"


def parameter(parameters: Record, name: str) -> str:
    """Return the first value of a parameter of a request, or an empty string if it is missing."""
    value = parameters.get(name) or ""
    return str(value[0] if isinstance(value, list) else value)


def answering(refuse: Callable[[str, str], Answer], operation: Callable[[Record], Any]) -> Callable[[Record], Any]:
    """Return an operation that answers a RefusedError of `operation` with `refuse(code, message)`."""

    def answered(request: Record) -> Any:
        try:
            return operation(request)
        except RefusedError as refusal:
            return refuse(refusal.code, str(refusal))

    return answered


def json_operation(function: Callable[[Record], Record]) -> Operation:
    """Return the operation of a JSON service that calls `function` with the request and returns its result."""
    return answering(requests.json_error, lambda request: requests.json_answer(function(request)))


def json_service(operations: Mapping[str, Operation]) -> Any:
    async def handle(method: str, path: str, headers: Record, body: bytes, query: Record) -> Answer:
        del method, path, query
        asked = str(headers.get("x-amz-target", "")).rpartition(".")[2]
        if asked not in operations:
            return requests.json_error("UnknownOperationException", f"The embedded AWS does not support {asked}.")
        try:
            fields = json.loads(body or b"{}")
        except ValueError:
            fields = None
        # Belief: A body that is no JSON object is refused. No check: SDKs always send an object.
        if not isinstance(fields, dict):
            return requests.json_error("SerializationException", "Invalid JSON")
        return operations[asked](fields)

    return handle
