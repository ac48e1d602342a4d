"""Injects faults into requests: throttling, denied access, expired credentials, internal errors, broken connections and
stale responses.

Faults use the operation names of AWS's service models. The emulator never refuses its own requests to itself. These
requests stand for AWS's internal calls, to which a client's limits and permissions do not apply.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import (
    ConcurrentRevocation,
    CutConnection,
    Denied,
    ExpiredCredentials,
    LateUpload,
    S3Error,
    StaleAnswer,
    Throttled,
)
from shoal_local_aws.seams import ec2, requests, routing, storage
from shoal_local_aws.service import OWN, Answer, Record, json_service

_KINDS = (Throttled, Denied, ExpiredCredentials, S3Error, CutConnection)
_QUERY = ("autoscaling", "cloudformation", "elasticloadbalancing", "iam", "rds", "sns", "sts")
_REST = ("elasticfilesystem", "scheduler")
# Belief: Throttling has these codes. No check: only many requests would show it.
_THROTTLED: Mapping[str, tuple[int, str, str]] = {
    "s3": (503, "SlowDown", "Please reduce your request rate."),
    "ec2": (503, "RequestLimitExceeded", "Request limit exceeded."),
    "lambda": (429, "TooManyRequestsException", "Rate exceeded"),
    **dict.fromkeys(_QUERY, (400, "Throttling", "Rate exceeded")),
    **dict.fromkeys(_REST, (429, "ThrottlingException", "Rate exceeded")),
}
"""HTTP status, code and message of a throttled request, by service. All other services are like EMR."""
_LIKE_EMR = (400, "ThrottlingException", "Rate exceeded")
_S3_ERROR = (500, "InternalError", "We encountered an internal error. Please try again.")
_UNSUPPORTED = {"ce": "AWSInsightsIndexService", "pricing": "AWSPriceListService"}
"""Services that are not emulated, with the target prefix of their requests. All requests to them are refused."""


def install(faults: Faults) -> None:
    """Make all requests, and the deletions of buckets and security group rules, check for faults."""
    dispatch = routing.dispatch.now

    async def unless_refused(
        method: str, path: str, headers: Record, body: bytes, query: Record, request_id: str
    ) -> Any:
        if OWN not in headers and any(map(faults.find, _KINDS)):
            service, operation = routing.service_and_operation(method, path, headers, body, query)
            refuse = partial(routing.refusal, service, operation, headers)
            if faults.find(ExpiredCredentials, key=routing.access_key(headers, query)):
                return refuse("ExpiredTokenException", "The security token included in the request is expired")
            if faults.trigger(Throttled, service=service, operation=operation):
                status, code, message = _THROTTLED.get(service, _LIKE_EMR)
                return refuse(code, message, status)
            if faults.find(Denied, service=service, operation=operation):
                return refuse()
            if service == "s3" and faults.trigger(S3Error, operation=operation):
                status, code, message = _S3_ERROR
                return refuse(code, message, status)
            if (service, operation) == ("s3", "GetObject"):
                return _perhaps_cut(await dispatch(method, path, headers, body, query, request_id), faults)
        return await dispatch(method, path, headers, body, query, request_id)

    routing.dispatch.put(unless_refused)
    routing.dispatch.wrap(partial(_perhaps_stale, faults))
    storage.delete_bucket.wrap(partial(_after_late_upload, faults))
    for direction in ("Ingress", "Egress"):
        ec2.operations.wrap(f"RevokeSecurityGroup{direction}", partial(_after_another, faults))
    for service, prefix in _UNSUPPORTED.items():
        routing.add_service(service, prefix, json_service({}))


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


def _after_late_upload(faults: Faults, delete: Callable[[str], Answer]) -> Callable[[str], Answer]:
    def deleting(bucket: str) -> Answer:
        if fault := faults.trigger(LateUpload):
            storage.put_object(bucket, fault.key, b"late", {})
        return delete(bucket)

    return deleting


def _after_another(faults: Faults, revoke: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def revoking(parameters: Record) -> Any:
        answer = revoke(parameters)
        # Rule: Only existing rules are revoked. Source: botocore ec2 RevokeSecurityGroupIngress.
        if faults.trigger(ConcurrentRevocation):
            kind = "SecurityGroupRuleId" if ec2.list_parameter(parameters, "SecurityGroupRuleId") else "Permission"
            return ec2.error(f"Invalid{kind}.NotFound", "The specified rule does not exist.")
        return answer

    return revoking


def _perhaps_stale(faults: Faults, dispatch: routing.Dispatch) -> routing.Dispatch:
    first: dict[str, tuple[float, Any]] = {}

    async def answered(method: str, path: str, headers: Record, body: bytes, query: Record, request_id: str) -> Any:
        if not faults.find(StaleAnswer):
            return await dispatch(method, path, headers, body, query, request_id)
        service, operation = routing.service_and_operation(method, path, headers, body, query)
        fault = faults.find(StaleAnswer, service=service, operation=operation)
        same = f"{method} {path} {query} {body!r}"
        if fault and same in first and time.monotonic() - first[same][0] < fault.seconds:
            return first[same][1]
        answer = await dispatch(method, path, headers, body, query, request_id)
        if fault:
            first[same] = time.monotonic(), answer
        return answer

    return answered
