"""Kinds of resources that a deployment can leave behind in an account: the entries of `kinds.yaml`, in the order of
deletion.

For a while, AWS still lists terminated instances and clusters, deleted NAT gateways and deleted stacks. They cost
nothing, so they are left out.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from shoal.aws.account import Account, ResourceRecord
from shoal.deployments.removal import deletion, listing
from shoal.deployments.removal.deletion import Delete, delete_call
from shoal.deployments.removal.ownership import Owned, fetched_tags, in_stack, in_vpc, listed_tags, never_owned

_DELETED = ("deleted", "terminated", "delete_complete")
_BEING_DELETED = (
    "deleting",
    "shutting-down",
    "terminating",
    "delete in progress",
    "delete_in_progress",
)


@dataclass(frozen=True, kw_only=True)
class ResourceKind:
    """One entry of `kinds.yaml`, with functions in place of their names. The file explains the fields."""

    listing: Callable[[Account], Iterator[ResourceRecord]]
    identifier: str
    owned: Owned
    delete: Delete | None
    costs: bool | str = False
    is_global: bool = False
    arn: str = ""
    cloudformation: str = ""

    def records(self, account: Account) -> Iterator[tuple[str, ResourceRecord]]:
        """Yield the identifier and the record of each existing resource of this kind."""
        for record in self.listing(account):
            if _state(record) not in _DELETED:
                yield str(record[self.identifier]), record

    def identifier_in(self, arn: str) -> str | None:
        """Return the identifier in an ARN of this kind, or None for an ARN of a different kind."""
        _arn, _partition, service, _region, _account, rest = arn.split(":", 5)
        found = re.fullmatch(self.arn, f"{service}:{rest}") if self.arn else None
        if not found:
            return None
        return found[1] if found.re.groups else arn

    def billed(self, record: ResourceRecord) -> bool:
        """Return whether AWS bills a resource, by use or by the hour.

        An auto scaling group costs money only if it has instances. A gateway endpoint is free.
        """
        if self.costs == "group":
            return bool(record.get("DesiredCapacity") or record.get("Instances"))
        return bool(self.costs) and not (self.costs == "endpoint" and record.get("VpcEndpointType") == "Gateway")


def is_being_deleted(record: ResourceRecord) -> bool:
    """Return whether AWS is already deleting the resource. Such a resource costs nothing and needs no delete call."""
    return _state(record) in _BEING_DELETED


def _state(record: ResourceRecord) -> str:
    for key in ("State", "Status", "LifeCycleState", "StackStatus"):
        value = record.get(key)
        if isinstance(value, Mapping):
            value = value.get("Name") or value.get("State")
        if value:
            return str(value).lower()
    return ""


def _read(row: Mapping[str, Any]) -> ResourceKind:
    owned = _owner(row)
    return ResourceKind(
        listing=_listing(row["list"]),
        identifier=row["id"],
        owned=in_vpc(owned) if row.get("in vpc") else owned,
        delete=_deletion(row.get("delete")),
        costs=row.get("costs", False),
        is_global=row.get("global", False),
        arn=row.get("arn", ""),
        cloudformation=row.get("stack", ""),
    )


def _listing(written: str | list[Any]) -> Callable[[Account], Iterator[ResourceRecord]]:
    if isinstance(written, str):
        return getattr(listing, written)  # type: ignore[no-any-return]
    service, operation, key, *parameters = written
    return lambda account: account.items(service, operation, key, **dict(*parameters))


def _owner(row: Mapping[str, Any]) -> Owned:
    match row["owned"]:
        case "tags":
            return listed_tags
        case "stack":
            return in_stack(row["stack"], row["id"])
        case "never":
            return never_owned
        case str(name):
            return getattr(listing, name)  # type: ignore[no-any-return]
        case [service, operation, answer, parameters]:
            return fetched_tags(service, operation, answer, **parameters)
    raise ValueError(f"`owned` in kinds.yaml must be a rule for the owner, not {row['owned']}")


def _deletion(written: str | list[Any] | None) -> Delete | None:
    if isinstance(written, list):
        service, operation, parameters = written
        return delete_call(service, operation, **parameters)
    return getattr(deletion, written) if written else None


TABLE: Mapping[str, Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
KINDS = {name: _read(row) for name, row in TABLE.items()}
