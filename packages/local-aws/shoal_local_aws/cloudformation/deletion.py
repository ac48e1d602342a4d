"""Deletes stacks in CloudFormation's order, also when a resource cannot be deleted.

ministack continues with every other resource. AWS keeps the resources that a remaining resource depends on.
"""

from typing import Any

from shoal_local_aws.seams import cloudformation
from shoal_local_aws.service import Record

_kept: dict[str, dict[str, Record]] = {}
"""By stack in deletion: the resources that stay because a resource that needs them could not be deleted."""


def install() -> None:
    """Keep needed resources. Call it after everything else that deletes resources is installed."""
    delete_stack, delete_resource = cloudformation.delete.now, cloudformation.delete_resource.now

    async def deleting(name: str, identifier: str, retain: Any = (), force: bool = False) -> None:
        if name in _kept:  # its deletion is in progress
            return
        if not force:  # a forced deletion keeps what is needed by itself
            _kept[name] = {}
        try:
            await delete_stack(name, identifier, retain, force=force)
        finally:
            stack = cloudformation.stacks.get(name)
            if stack is not None:
                stack.get("_resources", {}).update(_kept.get(name, {}))
            _kept.pop(name, None)

    def deleted(kind: str, physical: str, properties: Record, stack: str, logical: str) -> None:
        try:
            delete_resource(kind, physical, properties, stack, logical)
        except Exception:
            if stack in _kept:
                _keep_what_it_needs(stack, logical)
            raise

    cloudformation.delete_resource.put(deleted)
    cloudformation.delete.put(deleting)


def _keep_what_it_needs(stack: str, logical: str) -> None:
    record = cloudformation.stacks[stack]
    resources = record["_resources"]
    needed = cloudformation.needed_by([logical], record["_template"].get("Resources", {}), set(resources))
    for name in needed - {logical}:
        _kept[stack][name] = resources.pop(name)
