"""CloudFormation: its stacks, its resource types, and the tasks that create and delete both."""

from collections.abc import Callable, Container, Coroutine, Iterable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Operations, Record, Seam, Table, missing

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
"""The stacks, by their names; each has its `_resources`, by their logical ids, and its `_template`."""

find_stack: Callable[[str], Record | None] = _handlers.take("_resolve_stack")
"""A stack by its name or its id."""

error: Callable[[str, str], Answer] = _handlers.take("_error")
"""An error's answer: its code, its message."""

deploy: Seam[StackTask] = Seam("_deploy_stack_async", _stacks, _handlers, _changesets)
"""Creates or updates a stack: its name, its id, and more. Returns when it is done."""

delete: Seam[StackTask] = Seam("_delete_stack_async", _stacks, _handlers)
"""Deletes a stack: its name, its id, the retained resources, and `force`. Returns when it is done."""

needed_by: Callable[[Iterable[str], Record, set[str]], set[str]] = _stacks.take("_with_dependencies")
"""Resources with their dependencies: logical ids, the template's resources, and those that still exist."""

resolve: Seam[Callable[..., Any]] = Seam("_resolve_refs", _engine)
"""The value of a part of a template, with all references resolved."""

conditions: Seam[Callable[[Record, Record], dict[str, bool]]] = Seam(
    "_evaluate_conditions", _engine, _handlers, _changesets, _stacks
)
"""The values of a template's conditions: the template, and its parameters, each with a `Value`."""

# Resources

create_resource: Seam[Callable[[str, str, Record, str], Any]] = Seam("_provision_resource", _stacks)
"""Creates a resource: its type, logical id, properties and stack's name."""

update_resource: Seam[Callable[..., Any]] = Seam("_update_resource", _stacks)
"""Updates or replaces a resource: its type, physical id, old and new properties, stack's name, logical id, and more."""

delete_resource: Seam[Callable[[str, str, Record, str, str], None]] = Seam("_delete_resource", _stacks)
"""Deletes a resource: its type, physical id, properties, stack's name and logical id."""

replaces: Seam[Callable[[str, Record, Record], bool]] = Seam("_replacing_change", _provisioners, _stacks)
"""Whether a change replaces a resource: its type, its old and its new properties."""

runs_on_thread: Seam[Callable[[str], bool]] = Seam("_runs_on_worker_thread", _stacks)
"""Whether the handlers of a type run on a thread of their own, because they wait."""

create_group: Seam[Callable[..., Any]] = Seam("_asg_create", _provisioners)
delete_group: Seam[Callable[[str, Record], None]] = Seam("_asg_delete", _provisioners)
update_group: Callable[..., Any] = _provisioners.take("_asg_update")
"""The handlers of auto scaling groups, which call each other."""

template_of_group: Callable[[Record], Record] = _provisioners.take("_asg_launch_template")
"""The id, name and version of the launch template that a group names."""

generated_name: Callable[[str, str], str] = _provisioners.take("_physical_name")
"""The name that CloudFormation generates for a resource without a name: the stack's name, the logical id."""

_types: dict[str, Record] = _provisioners.take("_RESOURCE_HANDLERS")
_replacing: dict[str, Container[str]] = _provisioners.take("_REPLACING_PROPERTIES")
_tagged: dict[str, tuple[str, str]] = _provisioners.take("_STACK_TAG_PROPERTY")


def add_type(name: str, handlers: Record, replacing: Container[str]) -> None:
    """Add a resource type: its handlers `create`, `update` and `delete`, and the properties that replace it."""
    _types[name] = handlers
    _replacing[name] = replacing


def tag_type(name: str, prop: str) -> None:
    """Give the stack's tags to the resources of a type, in a property that lists tags."""
    _tagged[name] = (prop, "list")


def handlers_of(name: str) -> Record:
    """The handlers of a type that ministack has, to be changed in place."""
    if name not in _types:
        raise missing(f"{_provisioners.name}._RESOURCE_HANDLERS[{name!r}]")
    return _types[name]
