"""CloudFormation: stacks, resource types, and the functions that create and delete stacks and resources."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Operations, PatchPoint, Record, Table, missing

_engine, _handlers = (
    MinistackModule("services.cloudformation.engine"),
    MinistackModule("services.cloudformation.handlers"),
)
_provisioners, _stacks = (
    MinistackModule("services.cloudformation.provisioners"),
    MinistackModule("services.cloudformation.stacks"),
)
_changesets = MinistackModule("services.cloudformation.changesets")

StackTask = Callable[..., Coroutine[Any, Any, None]]

# Stacks

operations = Operations(_handlers, "_ACTION_HANDLERS")

stacks: Table = MinistackModule("services.cloudformation").take("_stacks")
"""Stacks by name. A stack's record has its resources by logical id in `_resources`, and its template in `_template`."""

find_stack: Callable[[str], Record | None] = _handlers.take("_resolve_stack")
"""Returns a stack by its name or id."""

error: Callable[[str, str], Answer] = _handlers.take("_error")
"""Returns an error response. Arguments: error code, message."""

deploy: PatchPoint[StackTask] = PatchPoint("_deploy_stack_async", _stacks, _handlers, _changesets)
"""Creates or updates a stack, and returns when this is complete. Arguments: name, id, and more."""

delete: PatchPoint[StackTask] = PatchPoint("_delete_stack_async", _stacks, _handlers)
"""Deletes a stack, and returns when this is complete. Arguments: name, id, retained resources, `force`."""

needed_by: Callable[[Iterable[str], Record, set[str]], set[str]] = _stacks.take("_with_dependencies")
"""Returns the logical ids of resources and of all their dependencies. Arguments: logical ids, the template's resources,
existing resources."""

conditions: PatchPoint[Callable[[Record, Record], dict[str, bool]]] = PatchPoint(
    "_evaluate_conditions", _engine, _handlers, _changesets, _stacks
)
"""Returns the values of a template's conditions. Arguments: the template, its parameters (each with a `Value`)."""

check_template: PatchPoint[Callable[..., None]] = PatchPoint(
    "validate_template_support", _engine, _handlers, _changesets
)
"""Raises ValueError for a template with unknown resource types, and for other wrong templates."""

# Resources

create_resource: PatchPoint[Callable[[str, str, Record, str], Any]] = PatchPoint("_provision_resource", _stacks)
"""Creates a resource. Arguments: type, logical id, properties, name of the stack."""

update_resource: PatchPoint[Callable[..., Any]] = PatchPoint("_update_resource", _stacks)
"""Updates or replaces a resource. Arguments: type, physical id, old and new properties, name of the stack, logical id,
and more."""

delete_resource: PatchPoint[Callable[[str, str, Record, str, str], None]] = PatchPoint("_delete_resource", _stacks)
"""Deletes a resource. Arguments: type, physical id, properties, name of the stack, logical id."""

replaces: PatchPoint[Callable[[str, Record, Record], bool]] = PatchPoint("_replacing_change", _provisioners, _stacks)
"""Returns whether a change replaces a resource. Arguments: type, old and new properties."""

runs_on_thread: PatchPoint[Callable[[str], bool]] = PatchPoint("_runs_on_worker_thread", _stacks)
"""Returns whether the handlers of a resource type need their own thread, because they wait for a service."""

create_group: PatchPoint[Callable[..., Any]] = PatchPoint("_asg_create", _provisioners)
delete_group: PatchPoint[Callable[[str, Record], None]] = PatchPoint("_asg_delete", _provisioners)
update_group: Callable[..., Any] = _provisioners.take("_asg_update")
"""Update handler of the CloudFormation type for auto scaling groups."""

template_of_group: Callable[[Record], Record] = _provisioners.take("_asg_launch_template")
"""Returns the id, name and version of the launch template that a group names."""

generated_name: Callable[[str, str], str] = _provisioners.take("_physical_name")
"""Returns the name that CloudFormation generates for a resource. Arguments: name of the stack, logical id."""

types: dict[str, Record] = _provisioners.take("_RESOURCE_HANDLERS")
"""Handlers `create`, `update` and `delete` of each resource type."""
_tagged: dict[str, tuple[str, str]] = _provisioners.take("_STACK_TAG_PROPERTY")


def tag_type(name: str, prop: str) -> None:
    """Make resources of a type get the tags of their stack, in the property `prop`, which is a list of tags."""
    _tagged[name] = (prop, "list")


def handlers_of(name: str) -> Record:
    """Return the handlers of one of ministack's resource types. The caller may change the dictionary to replace
    them."""
    if name not in types:
        raise missing(f"{_provisioners.name}._RESOURCE_HANDLERS[{name!r}]")
    return types[name]
