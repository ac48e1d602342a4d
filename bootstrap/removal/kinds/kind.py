"""What a row of the table of kinds is, and how most things are listed.

Easy to get wrong: what still counts. A terminated instance or cluster, a deleted NAT gateway and the record of a
deleted stack stay listed for a while, cost nothing and are left out; a key that is pending deletion counts, for it
still lives.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from botocore.exceptions import ClientError

from bootstrap.aws.account import Account, ResourceRecord
from bootstrap.aws.ownership import Owned
from bootstrap.removal.deletion import Delete

ListCall = Callable[[Account], Iterator[ResourceRecord]]

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
    """One row of the table.

    `identifier` is the record's key of what tells a thing from others of its kind; `arn` a pattern of service and
    resource as they are in its ARN, with the identifier as its group, or without a group where the ARN itself is the
    identifier; `billed` whether it costs money, by use or by the hour; `everywhere` that it belongs to no region;
    `cloudformation` its type there.
    """

    listing: ListCall
    identifier: str
    owned: Owned
    delete: Delete | None
    billed: Callable[[ResourceRecord], bool] = field(default=lambda _: False)
    is_global: bool = False
    arn: str = ""
    cloudformation: str = ""

    def things(self, account: Account) -> Iterator[tuple[str, ResourceRecord]]:
        """The identifiers and records of those that are there."""
        for record in self.listing(account):
            if _state(record) not in _DELETED:
                yield str(record[self.identifier]), record

    def identifier_in(self, arn: str) -> str | None:
        """The identifier that an ARN names, if it is one of this kind's."""
        _arn, _partition, service, _region, _account, rest = arn.split(":", 5)
        found = re.fullmatch(self.arn, f"{service}:{rest}") if self.arn else None
        if not found:
            return None
        return found[1] if found.re.groups else arn


def is_being_deleted(record: ResourceRecord) -> bool:
    """Whether its service is about to delete it: it needs no more than time, and is not paid for any more."""
    return _state(record) in _BEING_DELETED


def _state(record: ResourceRecord) -> str:
    for key in ("State", "Status", "LifeCycleState", "StackStatus"):
        value = record.get(key)
        if isinstance(value, Mapping):
            value = value.get("Name") or value.get("State")
        if value:
            return str(value).lower()
    return ""


def always(_record: ResourceRecord) -> bool:
    """What costs money as long as it is there."""
    return True


def list_call(service: str, operation: str, key: str, **parameters: object) -> ListCall:
    """By a list operation that answers records under a key."""
    return lambda account: account.items(service, operation, key, **parameters)


@contextmanager
def suppress_error(code: str) -> Iterator[None]:
    """Nothing more, where a thing that was listed is gone when it is asked about: the service says so by this code."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] != code:
            raise
