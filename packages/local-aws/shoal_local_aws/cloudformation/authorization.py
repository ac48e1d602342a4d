"""Checks that a stack's execution role may do what CloudFormation does for it: handle resources, and read parameters.

A resource whose handler is refused something fails, as on AWS.
"""

import uuid
from typing import Any

from shoal_local_aws.permissions import checks, handlers
from shoal_local_aws.seams import cloudformation, identity, requests, ssm
from shoal_local_aws.service import Record, acting


def install() -> None:
    """Check from now on, before a resource is created, updated or deleted, and before a parameter is read."""
    cloudformation.create_resource.wrap(_created)
    cloudformation.update_resource.wrap(_updated)
    cloudformation.delete_resource.wrap(_deleted)
    ssm.value.wrap(_read)


def _created(create: Any) -> Any:
    def created(kind: str, logical: str, properties: Record, stack: str) -> Any:
        _check("create", kind, logical, properties, stack)
        return create(kind, logical, properties, stack)

    return created


def _updated(update: Any) -> Any:
    def updated(kind: str, physical: str, old: Record, new: Record, stack: str, logical: str, *rest: Any) -> Any:
        if cloudformation.replaces.now(kind, old, new):
            _check("create", kind, logical, new, stack)
        elif old != new:
            _check("update", kind, logical, new, stack, physical)
        return update(kind, physical, old, new, stack, logical, *rest)

    return updated


def _deleted(delete: Any) -> Any:
    def deleted(kind: str, physical: str, properties: Record, stack: str, logical: str) -> None:
        _check("delete", kind, logical, properties, stack, physical)
        delete(kind, physical, properties, stack, logical)

    return deleted


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
    for action, arn, context in handlers.needed(resource, operation, limits.get):
        if refusal := checks.refusal(own.key, action, arn, context):
            said = f"{refusal} (Service: {action.partition(':')[0].title()}, Status Code: 403)"
            token = f"(RequestToken: {uuid.uuid4()}, HandlerErrorCode: AccessDenied)"
            raise ValueError(f'Resource handler returned message: "{said}" {token}')
