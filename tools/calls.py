"""Finds the AWS operations that Shoal's code calls, by searching the syntax trees of its modules.

A client is the result of `client("SERVICE")`, a variable to which such a result is assigned, or a variable with the
name of a service. A call is a method of a client, `get_paginator`, or a transfer. The name of an operation in a string
also counts as a call in two cases. In the first, the same call or table row names the service. In the second, only one
of the services that the module names has this operation.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import botocore.session
from botocore import xform_name

from shoal.deployments.removal.kinds import TABLE

ROOT = Path(__file__).parents[1]
ROOMS = (
    *("bootstrap", "common", "corpus", "experiments", "infra", "jobs", "shoal", "trainer"),
    "packages/guard/shoal_guard",
)
"""Folders of the installed code. `shoal_local_aws` is left out, because it emulates AWS."""
Calls = Mapping[tuple[str, str], set[str]]
"""Folders of code (rooms) that call an operation, by pair of service and operation. The service has its name in boto3,
and the operation has its name in the API.

`shoal_guard` runs as Lambda functions in the account.
"""
_TRANSFERS = {
    "download_file": ("HeadObject", "GetObject"),
    "upload_file": (
        *("PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"),
        "AbortMultipartUpload",
    ),
}
"""S3 operations that boto3's transfers call, including the operations for large files. AbortMultipartUpload is called
after the upload of a part failed."""


@cache
def operations(service: str) -> Mapping[str, str]:
    """Return the operations of a service: a mapping from boto3's method name to the operation name."""
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): name for name in model.operation_names}


@cache
def services() -> frozenset[str]:
    """Return the services that botocore knows."""
    return frozenset(botocore.session.get_session().get_available_services())


@cache
def find_calls() -> Calls:
    """Return all AWS operations that the code in `ROOMS` calls."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for call in calls_in(path.read_text("utf-8")):
                found[call].add(Path(room).name)
    for field in (each for row in TABLE.values() for each in row.values()):
        if isinstance(field, list):  # the field is a call: service, operation, and parameters
            service, operation, *_ = field
            found[service, operations(service)[operation]].add("shoal")
    return found


def calls_in(source: str) -> set[tuple[str, str]]:
    """Return the pairs of service and operation that the source code of a module calls."""
    return set(_Module(ast.parse(source)).calls())


class _Module:
    """Collects the calls in one module."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._clients = dict(self._assigned())
        self._modules = {
            each.asname or each.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for each in node.names
        }
        strings = {each for node in ast.walk(tree) if (each := _text(node))}
        self._named = (strings | set(self._clients.values())) & services()

    def calls(self) -> Iterator[tuple[str, str]]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Attribute):
                yield from self._method(node)
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.Tuple):
                yield from self._together(node.elts)
            elif name := _text(node):
                having = [each for each in self._named if name in operations(each)]
                if len(having) == 1:
                    yield having[0], operations(having[0])[name]

    def _assigned(self) -> Iterator[tuple[str, str]]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.keyword) and node.arg and (service := _service_of(node.value)):
                yield node.arg, service
            if not isinstance(node, ast.Assign):
                continue
            target, value = node.targets[0], node.value
            pairs = (
                zip(target.elts, value.elts, strict=False)
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                else [(target, value)]
            )
            for each, made in pairs:
                if (name := _name(each)) and (service := _service_of(made)):
                    yield name, service

    def _client(self, node: ast.expr) -> str | None:
        """Return the service if the expression is a client, or None."""
        if service := _service_of(node):
            return service
        name = _name(node)
        if name in self._modules:
            return None
        return self._clients.get(name) or (name.strip("_") if name.strip("_") in services() else None)

    def _method(self, node: ast.Attribute) -> Iterator[tuple[str, str]]:
        if not (service := self._client(node.value)):
            return
        if node.attr in operations(service):
            yield service, operations(service)[node.attr]
        elif service == "s3":
            yield from (("s3", each) for each in _TRANSFERS.get(node.attr, ()))

    def _call(self, node: ast.Call) -> Iterator[tuple[str, str]]:
        yield from self._together(node.args)
        called, strings = _name(node.func), [_text(each) for each in node.args]
        if called == "get_paginator" and isinstance(node.func, ast.Attribute) and strings[0]:
            service = self._client(node.func.value) or ""
            if service:
                yield service, operations(service)[strings[0]]

    def _together(self, nodes: list[ast.expr]) -> Iterator[tuple[str, str]]:
        strings = [each for each in map(_text, nodes) if each]
        for service in services().intersection(strings):
            yield from ((service, operations(service)[each]) for each in strings if each in operations(service))


def _text(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _service_of(node: ast.AST) -> str | None:
    """Return the service if the expression creates a client, with `X.client("SERVICE")` or with the function `client`
    of a module named SERVICE."""
    if not isinstance(node, ast.Call) or _name(node.func).strip("_") != "client":
        return None
    named = _text(node.args[0]) if node.args else ""
    if not named and isinstance(node.func, ast.Attribute):
        named = _name(node.func.value)
    return named if named in services() else None
