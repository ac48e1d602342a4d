"""The type of a row of `KINDS`, and how most resources are listed.

Terminated instances and clusters, deleted NAT gateways and deleted stacks stay listed for a while; they cost nothing
and are left out. A key that is pending deletion still exists and counts.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from botocore import xform_name
from botocore.exceptions import ClientError

from bootstrap.aws.account import Account, ResourceRecord
from bootstrap.aws.ownership import Owned, listed_tags
from bootstrap.removal.deletion import Delete, delete_call

ListCall = Callable[[Account], Iterator[ResourceRecord]]
Billed = Callable[[ResourceRecord], bool]

_DELETED = ("deleted", "terminated", "delete_complete")
_BEING_DELETED = (
    "deleting",
    "shutting-down",
    "terminating",
    "delete in progress",
    "delete_in_progress",
    "pendingdeletion",
)


@dataclass(frozen=True, kw_only=True)
class ResourceKind:
    """One row of `KINDS`.

    `identifier` is the record's key of the resource's identifier. `arn` is a pattern of the ARN's service and resource,
    with the identifier as its group, or without a group where the ARN itself is the identifier. `billed` is whether it
    costs money, by use or by the hour; `is_global` whether it belongs to no region; `cloudformation` its type there.
    """

    listing: ListCall
    identifier: str
    owned: Owned
    delete: Delete | None
    billed: Billed = field(default=lambda _: False)
    is_global: bool = False
    arn: str = ""
    cloudformation: str = ""

    def things(self, account: Account) -> Iterator[tuple[str, ResourceRecord]]:
        """The identifiers and records of those that exist."""
        for record in self.listing(account):
            if _state(record) not in _DELETED:
                yield str(record[self.identifier]), record

    def identifier_in(self, arn: str) -> str | None:
        """The identifier in an ARN of this kind; None for another ARN."""
        _arn, _partition, service, _region, _account, rest = arn.split(":", 5)
        found = re.fullmatch(self.arn, f"{service}:{rest}") if self.arn else None
        if not found:
            return None
        return found[1] if found.re.groups else arn


def is_being_deleted(record: ResourceRecord) -> bool:
    """Whether its service is deleting it already: it costs nothing more, and needs no call."""
    return _state(record) in _BEING_DELETED


def _state(record: ResourceRecord) -> str:
    for key in ("State", "Status", "LifeCycleState", "StackStatus", "DBInstanceStatus"):
        value = record.get(key)
        if isinstance(value, Mapping):
            value = value.get("Name") or value.get("State")
        if value:
            return str(value).lower()
    return ""


def always(_record: ResourceRecord) -> bool:
    """For `billed`: it costs money as long as it exists."""
    return True


def list_call(service: str, operation: str, key: str, **parameters: object) -> ListCall:
    """List by an operation whose answer has the records under `key`."""
    return lambda account: account.items(service, operation, key, **parameters)


def ec2_kind(
    key: str,
    identifier: str,
    cloudformation: str,
    arn: str,
    *,
    owned: Owned = listed_tags,
    listing: ListCall | None = None,
    delete: Delete | None = None,
    billed: Billed = lambda _: False,
) -> ResourceKind:
    """A kind of EC2, which is listed under `key`, unless `listing` does it, and deleted by its identifier alone, unless
    `delete` does it."""
    return ResourceKind(
        listing=listing or list_call("ec2", f"describe_{xform_name(key)}", key),
        identifier=identifier,
        owned=owned,
        delete=delete or delete_call("ec2", f"delete_{xform_name(cloudformation)}", **{identifier: "id"}),
        billed=billed,
        arn=f"ec2:{arn}/(.+)",
        cloudformation=f"AWS::EC2::{cloudformation}",
    )


@contextmanager
def suppress_error(code: str) -> Iterator[None]:
    """Ignore this error code, by which a service reports that a listed resource is gone by now."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] != code:
            raise
