"""Compares answers of services with botocore's shapes, which boto3 itself does not: it drops what it does not know, and
misses nothing that is not there."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree as Xml

from botocore.endpoint import EndpointCreator
from botocore.validate import ParamValidator

_ENVELOPES = {"ResponseMetadata", "requestId", "RequestId"}
_RANGES = ("Invalid length", "Invalid range")
"""Lengths and ranges are those that requests must have; AWS itself answers with empty lists."""
Differences = dict[tuple[str, str], set[str]]
"""By service and operation, of each that was compared: how an answer differs from the shape."""


@contextmanager
def compared() -> Iterator[Differences]:
    """Compare all answers without an error that the clients get which are made within the block."""
    found: Differences = defaultdict(set)
    create = EndpointCreator.create_endpoint

    def listening(creator: Any, *arguments: Any, **more: Any) -> Any:
        endpoint = create(creator, *arguments, **more)
        endpoint._event_emitter.register("before-parse", lambda **event: _note(found, event))
        return endpoint

    with patch.object(EndpointCreator, "create_endpoint", listening):
        yield found


def _note(found: Differences, event: Mapping[str, Any]) -> None:
    operation, answer = event["operation_model"], event["response_dict"]
    differing = differences(operation, answer["body"]) if answer["status_code"] < 300 else None
    if differing is not None:
        found[operation.service_model.service_name, operation.name] |= differing


def differences(operation: Any, body: Any) -> set[str] | None:
    """How an answer differs from the operation's shape; None where it cannot be compared.

    operation: botocore's model of it. body: the answer's bytes; that of an object in S3 is no document.
    """
    protocol, shape = operation.service_model.resolved_protocol, operation.output_shape
    if shape is None or not isinstance(body, bytes) or not body or operation.has_streaming_output:
        return set() if body in (b"", None) or shape is None else None
    if protocol in ("json", "rest-json"):
        lines = ParamValidator().validate(json.loads(body), shape).generate_report().splitlines()
        told = [line for line in lines if line and not line.startswith(_RANGES)]
        return {re.sub(r"\[\d+\]|, must be one of.*", "", line) for line in told}
    if protocol not in ("query", "ec2", "rest-xml"):
        return None
    root = Xml.fromstring(body)  # noqa: S314
    if protocol == "query":
        root = next(iter(root), root)
    payload = shape.serialization.get("payload")
    return set(_structure(root, shape.members[payload] if payload else shape, ""))


def _tag(node: Xml.Element) -> str:
    return node.tag.rpartition("}")[2]


def _structure(node: Xml.Element, shape: Any, path: str) -> Iterator[str]:
    known = {_serialized(name, member): (name, member) for name, member in shape.members.items()}
    there = {_tag(each) for each in node}
    for required in shape.required_members:
        member = shape.members[required]
        if _serialized(required, member) not in there and "location" not in member.serialization:
            yield f"Missing required parameter in {path or 'answer'}: {required}"
    for each in node:
        if _tag(each) in known:
            name, member = known[_tag(each)]
            yield from _value(each, member, f"{path}.{name}".lstrip("."))
        elif _tag(each) not in _ENVELOPES or path:
            yield f"Unknown element in {path or 'answer'}: {_tag(each)}"


def _serialized(name: str, shape: Any) -> str:
    if shape.type_name == "list" and shape.serialization.get("flattened"):
        name = shape.member.serialization.get("name", name)
    return str(shape.serialization.get("name", name))


def _value(node: Xml.Element, shape: Any, path: str) -> Iterator[str]:
    kind, text = shape.type_name, (node.text or "").strip()
    if kind == "structure":
        yield from _structure(node, shape, path)
    elif kind == "list":
        for each in [node] if shape.serialization.get("flattened") else node:
            yield from _value(each, shape.member, path)
    elif kind in ("integer", "long") and not text.lstrip("-").isdigit():
        yield f"Not a number at {path}"
    elif kind == "boolean" and text not in ("true", "false"):
        yield f"Not true or false at {path}"
