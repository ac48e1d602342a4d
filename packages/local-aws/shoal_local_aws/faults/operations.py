"""Finds the service and the operation of a request, by the names in AWS's own service models.

Most protocols write the operation's name into the request; REST services have only a method, a path and parameters.
Several operations may fit a request, and the one with the most requirements is meant: `PUT /bucket/key` is PutObject,
and with an upload's id it is UploadPart.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from urllib.parse import parse_qsl, urlsplit

import botocore.session

from shoal_local_aws.seams import routing
from shoal_local_aws.service import Record

_REST = {"s3": "s3", "lambda": "lambda", "elasticfilesystem": "efs", "scheduler": "scheduler"}
"""Services that write no name into their requests, with their names in botocore."""


def requested_operation(method: str, path: str, headers: Record, body: bytes, query: Record) -> tuple[str, str]:
    """The service by its name in IAM, and the operation by its name in the API."""
    service, operation = routing.service_and_operation(method, path, headers, body, query)
    if service in _REST:
        fitting = [form for form in _forms(_REST[service]) if form.fits(method, path, headers, query)]
        if fitting:
            return service, max(fitting, key=lambda form: form.weight).name
    return service, operation


@dataclass(frozen=True)
class _Form:
    """The pattern of requests for an operation; `weight` is its number of requirements."""

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
    """Whether a request has a parameter with a value; an empty value matches any."""
    found = query.get(name)
    found = found[0] if isinstance(found, list) else found
    return found is not None and (not value or found == value)
