"""Injects faults into requests: throttling, denied access, expired credentials, internal errors, unsupported
operations, broken connections and stale responses.

Every protocol has its own error format. The emulator never refuses its own requests to itself. These requests stand for
AWS's internal calls, to which a client's limits and permissions do not apply.

Faults use the operation names of AWS's service models. In most protocols, the request contains the operation's name. A
request to a REST service has only a method, a path and parameters. If several operations match it, the operation with
the most requirements is used. For example, `PUT /bucket/key` is PutObject, but with an upload id it is UploadPart.
"""

import json
import re
import time
import uuid
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import botocore.session

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import (
    ConcurrentRevocation,
    CutConnection,
    Denied,
    ExpiredCredentials,
    Fault,
    LateUpload,
    S3Error,
    StaleAnswer,
    Throttled,
)
from shoal_local_aws.seams import ec2, requests, routing, storage
from shoal_local_aws.service import OWN, Answer, Record, target_operation

_QUERY = ("autoscaling", "cloudformation", "elasticloadbalancing", "iam", "rds", "sns", "sts")
_REST = ("elasticfilesystem", "lambda", "scheduler")
_KINDS = (Throttled, Denied, ExpiredCredentials, S3Error, CutConnection)
_NOT_AUTHORIZED = "User: {user} is not authorized to perform: {action}"
_EXPIRED = "The security token included in the request is expired"
# Belief: Throttling, denial and expiry have these codes. No check: only many or wrong requests would show it.
_ERRORS: Mapping[type[Fault], Mapping[str, tuple[int, str, str]]] = {
    Throttled: {
        "s3": (503, "SlowDown", "Please reduce your request rate."),
        "ec2": (503, "RequestLimitExceeded", "Request limit exceeded."),
        "lambda": (429, "TooManyRequestsException", "Rate exceeded"),
        "query": (400, "Throttling", "Rate exceeded"),
        "rest": (429, "ThrottlingException", "Rate exceeded"),
        "json": (400, "ThrottlingException", "Rate exceeded"),
    },
    Denied: {
        "s3": (403, "AccessDenied", _NOT_AUTHORIZED),
        "ec2": (403, "UnauthorizedOperation", "You are not authorized to perform this operation."),
        "query": (403, "AccessDenied", _NOT_AUTHORIZED),
        "rest": (403, "AccessDeniedException", _NOT_AUTHORIZED),
        "json": (400, "AccessDeniedException", _NOT_AUTHORIZED),
    },
    ExpiredCredentials: {
        "s3": (400, "ExpiredToken", "The provided token has expired."),
        "ec2": (400, "RequestExpired", "Request has expired."),
        "query": (403, "ExpiredToken", _EXPIRED),
        "rest": (403, "ExpiredTokenException", _EXPIRED),
        "json": (400, "ExpiredTokenException", _EXPIRED),
    },
}
"""HTTP status, code and message of an error, by kind of fault and then by service or protocol."""
_UNSUPPORTED = {"ce": "AWSInsightsIndexService", "pricing": "AWSPriceListService"}
"""Services that are not emulated, with the target prefix of their requests. All requests to them are refused."""
_IN_BOTOCORE = {"s3": "s3", "lambda": "lambda", "elasticfilesystem": "efs", "scheduler": "scheduler"}
"""Services with requests that do not name the operation. The value is the service's name in botocore."""


def install(faults: Faults) -> None:
    """Make all requests, and the deletions of buckets and security group rules, check for faults."""
    dispatch = routing.dispatch.now

    async def unless_refused(
        method: str, path: str, headers: Record, body: bytes, query: Record, request_id: str
    ) -> Any:
        if OWN not in headers and any(map(faults.has_any, _KINDS)):
            service, operation = _requested_operation(method, path, headers, body, query)
            if faults.find(ExpiredCredentials, key=routing.access_key(headers, query)):
                return _refusal(ExpiredCredentials, service, operation)
            if faults.trigger(Throttled, service=service, operation=operation):
                return _refusal(Throttled, service, operation)
            if faults.find(Denied, service=service, operation=operation):
                return _refusal(Denied, service, operation)
            if service == "s3" and faults.trigger(S3Error, operation=operation):
                return _answer(service, 500, "InternalError", "We encountered an internal error. Please try again.")
            if (service, operation) == ("s3", "GetObject"):
                return _perhaps_cut(await dispatch(method, path, headers, body, query, request_id), faults)
        return await dispatch(method, path, headers, body, query, request_id)

    routing.dispatch.put(unless_refused)
    routing.dispatch.wrap(partial(_perhaps_stale, faults))
    storage.delete_bucket.wrap(partial(_after_late_upload, faults))
    for direction in ("Ingress", "Egress"):
        ec2.operations.wrap(f"RevokeSecurityGroup{direction}", partial(_after_another, faults))
    for service, prefix in _UNSUPPORTED.items():
        routing.add_service(service, prefix, _unsupported)


def _perhaps_cut(answer: Any, faults: Faults) -> Any:
    """Return the response to GetObject unchanged or, if a fault requires it, one that breaks in the middle."""
    status, headers, body = answer
    fault = faults.find(CutConnection)
    if (
        fault is None
        or not isinstance(body, bytes)
        or len(body) < max(2, fault.least)
        or not faults.trigger(CutConnection)
    ):
        return answer

    async def half(send: Any, receive: Any) -> None:
        del receive
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})

    return status, {**headers, "Content-Length": str(len(body))}, requests.streamed(half)


async def _unsupported(method: str, path: str, headers: Record, body: bytes, query: Record) -> Answer:
    del method, path, body, query
    message = f"The embedded AWS does not support {target_operation(headers)}."
    return _answer("", 400, "UnknownOperationException", message)


def _refusal(kind: type[Fault], service: str, operation: str) -> Answer:
    errors = _ERRORS[kind]
    protocol = "query" if service in _QUERY else "rest" if service in _REST else "json"
    status, code, message = errors.get(service) or errors[protocol]
    user = f"arn:aws:iam::{requests.account()}:user/test"
    return _answer(service, status, code, message.format(user=user, action=f"{service}:{operation}"))


def _answer(service: str, status: int, code: str, message: str) -> Answer:
    """Return an error response in the format of the service's protocol."""
    request, said = str(uuid.uuid4()), f"<Code>{code}</Code><Message>{message}</Message>"
    if service == "s3":
        body = f"<Error>{said}<RequestId>{request}</RequestId></Error>"
    elif service == "ec2":
        body = f"<Response><Errors><Error>{said}</Error></Errors><RequestID>{request}</RequestID></Response>"
    elif service in _QUERY:
        error = f"<Error><Type>Sender</Type>{said}</Error>"
        body = f"<ErrorResponse>{error}<RequestId>{request}</RequestId></ErrorResponse>"
    else:
        body = json.dumps({"__type": code, "message": message})
        return status, {"Content-Type": "application/x-amz-json-1.1", "x-amzn-errortype": code}, body.encode()
    return status, {"Content-Type": "text/xml"}, body.encode()


def _after_late_upload(faults: Faults, delete: Callable[[str], Answer]) -> Callable[[str], Answer]:
    def deleting(bucket: str) -> Answer:
        if fault := faults.trigger(LateUpload, bucket=bucket):
            storage.put_object(bucket, fault.key, b"late", {})
        return delete(bucket)

    return deleting


def _after_another(faults: Faults, revoke: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def revoking(parameters: Record) -> Any:
        answer = revoke(parameters)
        # Rule: Only existing rules are revoked. Source: botocore ec2 RevokeSecurityGroupIngress.
        if faults.trigger(ConcurrentRevocation):
            kind = "SecurityGroupRuleId" if ec2.list_parameter(parameters, "SecurityGroupRuleId") else "Permission"
            return ec2.error(f"Invalid{kind}.NotFound", "The specified rule does not exist.", 400)
        return answer

    return revoking


def _perhaps_stale(faults: Faults, dispatch: routing.Dispatch) -> routing.Dispatch:
    first: dict[str, tuple[float, Any]] = {}

    async def answered(method: str, path: str, headers: Record, body: bytes, query: Record, request_id: str) -> Any:
        if not faults.has_any(StaleAnswer):
            return await dispatch(method, path, headers, body, query, request_id)
        service, operation = _requested_operation(method, path, headers, body, query)
        fault = faults.find(StaleAnswer, service=service, operation=operation)
        same = f"{method} {path} {query} {body!r}"
        if fault and same in first and time.monotonic() - first[same][0] < fault.seconds:
            return first[same][1]
        answer = await dispatch(method, path, headers, body, query, request_id)
        if fault:
            first[same] = time.monotonic(), answer
        return answer

    return answered


def _requested_operation(method: str, path: str, headers: Record, body: bytes, query: Record) -> tuple[str, str]:
    """Return the service and the operation of a request: the service's name in IAM, and the operation's API name."""
    service, operation = routing.service_and_operation(method, path, headers, body, query)
    if service in _IN_BOTOCORE:
        fitting = [form for form in _forms(_IN_BOTOCORE[service]) if form.fits(method, path, headers, query)]
        if fitting:
            return service, max(fitting, key=lambda form: form.weight).name
    return service, operation


@dataclass(frozen=True)
class _Form:
    """Pattern that matches the requests for an operation. `weight` counts the requirements of the pattern."""

    name: str
    method: str
    path: "re.Pattern[str]"
    query: tuple[tuple[str, str], ...]
    members: tuple[str, ...]
    headers: tuple[str, ...]
    weight: tuple[int, int]

    def fits(self, method: str, path: str, headers: Container[str], query: Record) -> bool:
        return (
            method == self.method
            and self.path.fullmatch(path) is not None
            and all(_has(query, name, value) for name, value in self.query)
            and all(name in query for name in self.members)
            and all(name.lower() in headers for name in self.headers)
        )


@cache
def _forms(service: str) -> list[_Form]:
    model = botocore.session.get_session().get_service_model(service)
    return [_form(model.operation_model(name)) for name in model.operation_names]


def _form(operation: "botocore.model.OperationModel") -> _Form:
    parts = urlsplit(operation.http["requestUri"])
    literal = re.split(r"\{[^}]+\}", parts.path.rstrip("/"))
    shape = operation.input_shape
    required = [shape.members[name].serialization for name in shape.required_members] if shape else []
    query = tuple(parse_qsl(parts.query, keep_blank_values=True))
    in_query, in_headers = (
        tuple(each["name"] for each in required if each.get("location") == place) for place in ("querystring", "header")
    )
    return _Form(
        name=operation.name,
        method=operation.http["method"],
        path=re.compile("(.+)".join(map(re.escape, literal)) + "/?"),
        query=query,
        members=in_query,
        headers=in_headers,
        weight=(len("".join(literal)), len(query) + len(in_query) + len(in_headers)),
    )


def _has(query: Record, name: str, value: str) -> bool:
    """Return whether a request has a parameter with this value. An empty value matches any value."""
    found = query.get(name)
    found = found[0] if isinstance(found, list) else found
    return found is not None and (not value or found == value)
