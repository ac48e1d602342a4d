"""Defines `ResourceType`, a CloudFormation resource type, and functions that the types of all services use.

Every handler calls the service's operation with the template's values, and botocore refuses unknown parameters: a
template that is wrong on AWS is wrong here, too. Templates may have numbers as strings and strings as numbers; the
services accept neither, so `call_service` converts them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shoal_local_aws.seams import cloudformation, requests
from shoal_local_aws.service import Record, client

TAGS = "Tags"
Created = tuple[str, dict[str, str]]


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """How CloudFormation handles a type.

    create: logical id, properties and stack name to physical id and attributes.
    delete: physical id and properties.
    change: physical id, old and new properties.
    changeable: the properties that `change` applies in place; a change of any other replaces the resource.
    replaces: whether a change from old to new properties replaces the resource nevertheless.
    tagged: whether it takes the stack's tags, in a property `Tags`.
    gone: the error codes of the service for a missing resource, which do not make the deletion fail.
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
    """Show a resource with its id in the stack while it is being created, as CloudFormation does."""
    resources = cloudformation.stacks[stack]["_resources"]
    if logical in resources:  # a replacement is shown when it exists
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
    """Convert a template's value to the type that an API's shape requires."""
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
