"""Defines `ResourceType`, a CloudFormation resource type, and functions that the types of all services use.

Every handler calls the service's operation with the template's values, and botocore refuses unknown parameters. So a
template that is wrong on AWS is wrong here, too. A template may contain numbers as strings and strings as numbers, but
services accept neither. So use `call_service`, which converts them.
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
    """Handlers of a CloudFormation resource type.

    create: Creates a resource from logical id, properties and stack name. Returns the physical id and the attributes.
    delete: Deletes a resource, given its physical id and properties.
    change: Updates a resource, given its physical id, old properties and new properties.
    changeable: Properties that `change` updates in place. A change of any other property replaces the resource.
    tagged: Whether resources get the stack's tags, in the property `Tags`.
    gone: Error codes by which the service reports a missing resource. They do not make the deletion fail.
    """

    create: Callable[[str, Record, str], Created]
    delete: Callable[[str, Record], None]
    change: Callable[[str, Record, Record], None] | None = None
    changeable: tuple[str, ...] = ()
    tagged: bool = True
    gone: tuple[str, ...] = ()


@contextmanager
def shown_as_creating(stack: str, logical: str, kind: str, identifier: str) -> Iterator[None]:
    """Make the stack list a resource with its physical id while it is being created, as CloudFormation does."""
    resources = cloudformation.stacks[stack]["_resources"]
    if logical in resources:  # CloudFormation lists a replacement only after its creation
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
    """Call a service's operation with values from a template, converted to the types that the operation requires."""
    caller = client(service)
    name = caller.meta.method_to_api_mapping[operation]
    shape = caller.meta.service_model.operation_model(name).input_shape
    return getattr(caller, operation)(**_conform(parameters, shape))


def _conform(value: Any, shape: Any) -> Any:
    """Convert a value from a template to the type that a botocore shape requires."""
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
