"""Permissions that CloudFormation needs to create, update or delete a resource. `handlers.yaml` lists and explains
them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from shoal_local_aws.permissions.launches import Permission, passed_to
from shoal_local_aws.seams.lookup import Record

_FIELD = re.compile(r"\{([\w.]+)\}")
READS = re.compile(r"[\w-]+:(Describe|Get|List|View)")
_BOUNDED = (
    *("iam:AttachRolePolicy", "iam:CreateRole", "iam:DeleteRolePolicy"),
    *("iam:DetachRolePolicy", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"),
)
"""Actions on roles that have the condition key `iam:PermissionsBoundary`."""
_ANYTHING: Record = {"create": ["*"], "update": ["*"], "delete": ["*"]}
"""Actions for a resource type that is not listed. It needs permission for all actions."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource of a stack. If it exists, it has a physical id."""

    kind: str
    logical: str
    properties: Record
    stack: str
    region: str
    account: str
    physical: str = ""

    def values(self, field: str) -> list[str]:
        """Return the values for a field in an ARN pattern, or an empty list if the resource lacks the property."""
        own = {"region": self.region, "account": self.account, "stack": self.stack, "id": self.physical or "*"}
        if field in own:
            return [own[field]]
        if field in ("name", "bucket"):
            return [self._name().lower() if field == "bucket" else self._name()]
        return _texts(_property(self.properties, field))

    def _name(self) -> str:
        given = _texts(_property(self.properties, handlers_of(self.kind).get("name", "")))
        return _end(self.physical) or next(iter(given), f"{self.stack}-{self.logical}-*")


@cache
def handlers() -> dict[str, Record]:
    """Return the content of `handlers.yaml`: one entry for each resource type."""
    found: dict[str, Record] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return found


def handlers_of(kind: str) -> Record:
    custom = kind.startswith("Custom::") or kind == "AWS::CloudFormation::CustomResource"
    return handlers().get("Custom" if custom else kind, _ANYTHING)


def required_permissions(
    resource: Resource, operation: str, boundary_of: Callable[[str], str | None]
) -> Iterator[Permission]:
    """Yield the permissions that CloudFormation needs for an operation (`create`, `update` or `delete`) on a resource.

    `boundary_of` returns the permissions boundary of an existing role.
    """
    listed = handlers_of(resource.kind)
    actions = [*listed.get(operation, ()), *listed.get("dependent", {}).get(operation, ())]
    actions += listed.get("read", ()) if operation != "delete" else ()
    for action in dict.fromkeys(actions):
        if action == "iam:PassRole":
            for service, role in listed["passes"].items():
                yield from ((action, arn, passed_to(service)) for arn in _arns(role, resource))
        elif not _tags_nothing(action, resource):
            found = (arn for pattern, arn in listed.get("resources", {}).items() if fnmatchcase(action, pattern))
            for arn in _arns(next(found, "*"), resource):
                yield action, arn, _keys(action, arn, resource, boundary_of)


def _tags_nothing(action: str, resource: Resource) -> bool:
    return "Tag" in action and not READS.match(action) and not any("Tag" in name for name in resource.properties)


def _keys(action: str, arn: str, resource: Resource, boundary_of: Callable[[str], str | None]) -> Record:
    if action == "kms:CreateGrant":  # a service creates the grant on behalf of CloudFormation
        return {"kms:GrantIsForAWSResource": "true"}
    if action not in _BOUNDED:
        return {}
    own = resource.kind == "AWS::IAM::Role"
    boundary = resource.properties.get("PermissionsBoundary") if own else boundary_of(_end(arn))
    return {"iam:PermissionsBoundary": boundary} if boundary else {}


def _arns(template: str, resource: Resource) -> list[str]:
    found = [template]
    for field in _FIELD.findall(template):
        place = f"{{{field}}}"
        values = [value if template == place else _end(value) for value in resource.values(field)]
        found = [each.replace(place, value) for each in found for value in values]
    return found


def _end(name: str) -> str:
    """Return the last part of an ARN. A name is returned unchanged."""
    return re.split("[:/]", name)[-1] if name.startswith("arn:") else name


def _property(properties: Record, path: str) -> Any:
    found: Any = properties
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _texts(value: Any) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value]) if each]
