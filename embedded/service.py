"""Calls the emulated services over HTTP, and builds their answers.

Do not call a service from the event loop, because the call would wait for itself. Use clients only in background
threads and in CloudFormation's handlers, which run on threads of their own.
"""

import json
import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import boto3
from botocore.exceptions import ClientError

from embedded.seams import requests
from embedded.seams.lookup import Answer, Record

Operation = Callable[[Record], Answer]
__all__ = [
    "Answer",
    "Operation",
    "Record",
    "RefusedError",
    "client",
    "json_operation",
    "json_service",
    "parameter",
    "target_operation",
    "upload_log",
]
_logger = logging.getLogger(__name__)


class RefusedError(Exception):
    """A service refuses a request, with an error code and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def client(service: str) -> Any:
    """The boto3 client of a service, for the account and region of the current request."""
    return _client(service, requests.account(), requests.region())


@cache
def _client(service: str, account: str, region: str) -> Any:
    # ministack takes an access key of 12 digits for the account's number
    session = boto3.Session(aws_access_key_id=account, aws_secret_access_key=account, region_name=region)
    return session.client(service)  # type: ignore[call-overload]


def parameter(parameters: Record, name: str) -> str:
    """The (first) value of a request's parameter; empty where there is none."""
    value = parameters.get(name) or ""
    return str(value[0] if isinstance(value, list) else value)


def target_operation(headers: Record) -> str:
    """The operation that a request of a JSON service names; empty where it names none."""
    return str(headers.get("x-amz-target", "")).rpartition(".")[2]


def upload_log(bucket: str, key: str, body: bytes) -> None:
    """Upload a log to a bucket. A failure is only a warning, as on AWS."""
    try:
        client("s3").put_object(Bucket=bucket, Key=key, Body=body)
    except ClientError as error:
        _logger.warning("log %s of bucket %s is lost: %s", key, bucket, error)


def json_operation(function: Callable[[Record], Record]) -> Operation:
    """Make an operation of a JSON service from a function of a request that returns a result."""

    def operation(request: Record) -> Answer:
        try:
            return requests.json_answer(function(request))
        except RefusedError as refusal:
            return requests.json_error(refusal.code, str(refusal))

    return operation


def json_service(name: str, operations: Mapping[str, Operation]) -> Any:
    """The handler of a JSON service that has only these operations."""

    async def handle(method: str, path: str, headers: Record, body: bytes, query: Record) -> Answer:
        del method, path, query
        asked = target_operation(headers)
        if asked not in operations:
            message = f"The embedded AWS does not support {asked} of {name}."
            return requests.json_error("UnknownOperationException", message)
        return operations[asked](json.loads(body or b"{}"))

    return handle
