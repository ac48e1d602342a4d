"""Defines what a CloudFormation resource type is here, and what the types of all services share.

Every handler calls the service's own operation with the template's values, and botocore refuses unknown parameters: a
template that is wrong on AWS is wrong here. Templates may hold numbers as strings and strings as numbers; the services
accept neither, so `call_service` converts them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from embedded.seams import cloudformation, requests
from embedded.service import Record, client

TAGS = "Tags"
Created = tuple[str, dict[str, str]]


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """How CloudFormation handles a type.

    create: logical id, properties and stack name to physical id and attributes.
    delete: physical id and properties.
    change: physical id, old and new properties.
    changeable: the properties that `change` applies in place; any other one that changes replaces the resource.
    replaces: whether changed properties replace the resource nevertheless, from the old and the new ones.
    tagged: whether it takes the stack's tags, in a property `Tags`.
    gone: the error codes by which the service says that there is nothing to delete: what somebody deleted by hand
        does not keep its stack from being deleted.
    """

    create: Callable[[str, Record, str], Created]
    delete: Callable[[str, Record], None]
    change: Callable[[str, Record, Record], None] | None = None
    changeable: tuple[str, ...] = ()
    replaces: Callable[[Record, Record], bool] | None = None
    tagged: bool = True
    gone: tuple[str, ...] = ()


@contextmanager
def shown_as_creating(stack: str, logical: str, kind: str, identifier: str) -> Iterator[None]:
    """Let a stack tell of a resource that takes long to make, as CloudFormation does once it has an id."""
    resources = cloudformation.stacks[stack]["_resources"]
    if logical in resources:  # its replacement is told of when it is there
        yield
        return
    resources[logical] = {
        "LogicalResourceId": logical,
        "PhysicalResourceId": identifier,
        "ResourceType": kind,
        "ResourceStatus": "CREATE_IN_PROGRESS",
        "Properties": {},
        "Attributes": {},
        "Timestamp": requests.now(),
    }
    try:
        yield
    except BaseException:
        del resources[logical]
        raise


def call_service(service: str, operation: str, parameters: Mapping[str, Any]) -> Any:
    """Call an operation with a template's values; botocore refuses parameters that the operation does not have."""
    caller = client(service)
    name = caller.meta.method_to_api_mapping[operation]
    shape = caller.meta.service_model.operation_model(name).input_shape
    return getattr(caller, operation)(**_conform(parameters, shape))


def _conform(value: Any, shape: Any) -> Any:
    """A template's value in the form that an API's shape asks for: templates hold numbers as strings and vice versa."""
    if shape.type_name == "structure":
        return {name: _conform(inner, shape.members[name]) if name in shape.members else inner
                for name, inner in value.items()}  # fmt: skip
    if shape.type_name == "list":
        return [_conform(inner, shape.member) for inner in value]
    if shape.type_name == "map":
        return {str(name): _conform(inner, shape.value) for name, inner in value.items()}
    if shape.type_name in ("integer", "long"):
        return int(value)
    if shape.type_name in ("double", "float"):
        return float(value)
    if shape.type_name == "boolean":
        return str(value).lower() == "true"
    return str(value) if isinstance(value, int | float) else value


def generated_name(stack: str, logical: str) -> str:
    """The name that CloudFormation makes for a resource which the template gives none."""
    return cloudformation.name_of(stack, logical)
