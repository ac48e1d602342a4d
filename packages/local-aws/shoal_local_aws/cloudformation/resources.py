"""Checks before each operation of CloudFormation on a resource. The operation fails if the creation of the stack is
cancelled, if a permission is missing, or if a fault requires it."""

import uuid
from typing import Any

from shoal_local_aws.cloudformation import stacks
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import CreateFails, DeleteFails
from shoal_local_aws.permissions import checks, handlers
from shoal_local_aws.seams import cloudformation, identity, requests, ssm
from shoal_local_aws.service import Record, acting


def install(faults: Faults) -> None:
    """Add the checks before each creation, update and deletion of a resource, and before each read of a parameter."""
    create, update = cloudformation.create_resource.now, cloudformation.update_resource.now
    delete = cloudformation.delete_resource.now

    def fail_if_faulty(kind: type[CreateFails] | type[DeleteFails], resource_type: str, logical: str) -> None:
        if fault := faults.trigger(kind, resource_type=resource_type, logical_id=logical):
            raise ValueError(fault.reason)

    def created(kind: str, logical: str, properties: Record, stack: str) -> Any:
        # Belief: Resources that a deletion cancels fail. No check: it takes a stack.
        if stacks.is_cancelled(stack):
            raise ValueError("Resource creation cancelled")
        _check("create", kind, logical, properties, stack)
        fail_if_faulty(CreateFails, kind, logical)
        return create(kind, logical, properties, stack)

    def updated(kind: str, physical: str, old: Record, new: Record, stack: str, logical: str, *rest: Any) -> Any:
        if cloudformation.replaces.now(kind, old, new):
            _check("create", kind, logical, new, stack)
        elif old != new:
            _check("update", kind, logical, new, stack, physical)
        return update(kind, physical, old, new, stack, logical, *rest)

    def deleted(kind: str, physical: str, properties: Record, stack: str, logical: str) -> None:
        try:
            _check("delete", kind, logical, properties, stack, physical)
            fail_if_faulty(DeleteFails, kind, logical)
            delete(kind, physical, properties, stack, logical)
        except Exception:
            stacks.keep_dependencies(stack, logical)
            raise

    cloudformation.create_resource.put(created)
    cloudformation.update_resource.put(updated)
    cloudformation.delete_resource.put(deleted)
    ssm.value.wrap(_read)


def _read(value: Any) -> Any:
    def read(name: str, *rest: Any, **more: Any) -> Any:
        if own := acting():
            account = "" if name.startswith("/aws/") else requests.account()
            arn = f"arn:aws:ssm:{requests.region()}:{account}:parameter/{name.lstrip('/')}"
            if refusal := checks.refusal(own.key, "ssm:GetParameters", arn):
                raise ValueError(refusal)
        return value(name, *rest, **more)

    return read


def _check(operation: str, kind: str, logical: str, properties: Record, stack: str, physical: str = "") -> None:
    resource = handlers.Resource(
        kind=kind,
        logical=logical,
        properties=properties,
        stack=stack,
        region=requests.region(),
        account=requests.account(),
        physical=physical,
    )
    own = acting()
    assert own
    limits = {name: role.get("PermissionsBoundary") for name, role in identity.roles.items()}
    for action, arn, context in handlers.required_permissions(resource, operation, limits.get):
        # Rule: A missing permission fails. Source: aws-cloudformation/aws-cloudformation-resource-providers-rds#291.
        if refusal := checks.refusal(own.key, action, arn, context):
            said = f"{refusal} (Service: {action.partition(':')[0].title()}, Status Code: 403)"
            token = f"(RequestToken: {uuid.uuid4()}, HandlerErrorCode: AccessDenied)"
            raise ValueError(f'Resource handler returned message: "{said}" {token}')
