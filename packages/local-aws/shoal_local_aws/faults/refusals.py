"""Refuses requests as AWS does: because of throttling, missing permissions, expired credentials, internal errors, or
missing support.

Every protocol has its own format for an error. Requests of the emulator to itself are never refused, because they stand
for AWS's internal calls, which no limit or permission of a client applies to.
"""

import json
import uuid
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import CutConnection, Denied, ExpiredCredentials, S3Error, Throttled
from shoal_local_aws.faults.operations import requested_operation
from shoal_local_aws.seams import requests, routing
from shoal_local_aws.service import OWN, Answer, Record, target_operation

_QUERY = ("autoscaling", "cloudformation", "elasticloadbalancing", "iam", "rds", "sns", "sts")
_REST = ("elasticfilesystem", "lambda", "scheduler")
_KINDS = (Throttled, Denied, ExpiredCredentials, S3Error, CutConnection)
_UNSUPPORTED = {  # service: what its requests' target begins with
    "ce": "AWSInsightsIndexService",
    "pricing": "AWSPriceListService",
    "sagemaker": "SageMaker",
}


def install(faults: Faults) -> None:
    """Check for faults before each request is answered."""
    dispatch = routing.dispatch.now

    async def unless_refused(
        method: str, path: str, headers: Record, body: bytes, query: Record, request_id: str
    ) -> Any:
        if OWN not in headers and any(map(faults.has_any, _KINDS)):
            service, operation = requested_operation(method, path, headers, body, query)
            if faults.find(ExpiredCredentials, key=routing.access_key(headers, query)):
                return _expired(service)
            if faults.trigger(Throttled, service=service, operation=operation):
                return _throttled(service)
            if faults.find(Denied, service=service, operation=operation):
                return _denied(service, operation)
            if service == "s3" and faults.trigger(S3Error, operation=operation):
                return _answer(service, 500, "InternalError", "We encountered an internal error. Please try again.")
            if (service, operation) == ("s3", "GetObject"):
                return _perhaps_cut(await dispatch(method, path, headers, body, query, request_id), faults)
        return await dispatch(method, path, headers, body, query, request_id)

    routing.dispatch.put(unless_refused)
    for service, prefix in _UNSUPPORTED.items():
        routing.add_service(service, prefix, _unsupported)


def _perhaps_cut(answer: Any, faults: Faults) -> Any:
    """The answer with an object, or, with a fault, an answer that ends in the middle."""
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


def _throttled(service: str) -> Answer:
    if service == "s3":
        return _answer(service, 503, "SlowDown", "Please reduce your request rate.")
    if service == "ec2":
        return _answer(service, 503, "RequestLimitExceeded", "Request limit exceeded.")
    if service in _QUERY:
        return _answer(service, 400, "Throttling", "Rate exceeded")
    code = "TooManyRequestsException" if service == "lambda" else "ThrottlingException"
    return _answer(service, 429 if service in _REST else 400, code, "Rate exceeded")


def _denied(service: str, operation: str) -> Answer:
    if service == "ec2":
        return _answer(service, 403, "UnauthorizedOperation", "You are not authorized to perform this operation.")
    code = "AccessDenied" if service == "s3" or service in _QUERY else "AccessDeniedException"
    user = f"arn:aws:iam::{requests.account()}:user/test"
    message = f"User: {user} is not authorized to perform: {service}:{operation}"
    return _answer(service, 400 if service not in ("s3", *_QUERY, *_REST) else 403, code, message)


def _expired(service: str) -> Answer:
    if service == "s3":
        return _answer(service, 400, "ExpiredToken", "The provided token has expired.")
    if service == "ec2":
        return _answer(service, 400, "RequestExpired", "Request has expired.")
    code = "ExpiredToken" if service in _QUERY else "ExpiredTokenException"
    status = 403 if service in (*_QUERY, *_REST) else 400
    return _answer(service, status, code, "The security token included in the request is expired")


def _answer(service: str, status: int, code: str, message: str) -> Answer:
    """An error in the format of a service's protocol."""
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
