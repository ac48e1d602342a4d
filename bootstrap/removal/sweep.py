"""Finds everything of an owner that is left in an account, whatever the state of its stack, and deletes it.

The owner is a deployment, or what a `Claim` names: any stack, tag or prefix.

Two sources decide ownership, each service's own list and the tagging service, because each misses some resources. A
failed deletion is tried again as long as anything else changes: a network can be deleted only minutes after what was
in it. What cannot be listed does not count as deleted: it is `UNVERIFIED`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws.account import Account, ResourceRecord
from bootstrap.aws.ownership import NameOnlyError, Ownership, OwnershipUnknownError, reason_of
from bootstrap.removal import deletion
from bootstrap.removal.kinds import ALL_KINDS, KINDS, ResourceKind, is_being_deleted
from common.errors import ShoalError

LONGEST_SECONDS = 1200.0
STUCK_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0

FOUND, DELETED, KEPT, BEING_DELETED, LEFT = "goes", "deleted", "stays", "is being deleted", "is left"
UNVERIFIED = "cannot be told"
"""Its existence or its owner cannot be read: it is not deleted, and not proven gone."""
ALL = "(all)"
"""The identifier of all resources of a kind that cannot be listed."""
_STILL_LISTED = "it was deleted, but is still listed"
# A stack belongs to the deployment by its name, a rule is deleted with its group, and a spot request stays listed long
# after its end.
_NOT_REPORTED = (":stack/", ":security-group-rule/", ":spot-instances-request/")
_BUCKET = "s3 bucket"
UNKNOWN = "other"
"""The kind of what only the tagging service names, and no row of `KINDS` lists."""


@dataclass(kw_only=True)
class FoundResource:
    kind: str
    identifier: str
    billed: bool
    outcome: str = FOUND
    why: str = ""
    stack: str = ""
    """The CloudFormation stack that owns it, where that is known."""
    runs: Sequence[str] = ()
    """Of a bucket that is kept for them: the runs that were not fetched."""
    record: ResourceRecord = field(default_factory=dict, repr=False)

    @property
    def costs(self) -> bool:
        """Whether it is left and still costs money."""
        return self.billed and self.outcome in (FOUND, LEFT)

    @property
    def is_pending(self) -> bool:
        kind = ALL_KINDS.get(self.kind)
        return self.outcome in (FOUND, LEFT, BEING_DELETED) and kind is not None and bool(kind.delete)

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.identifier


def find_resources(deployment: str, account: Account) -> list[FoundResource]:
    """Everything that belongs to the deployment, in the order of deletion; what is kept has the outcome KEPT.

    What a service does not report is included with the outcome UNVERIFIED.
    """
    return find_owned(Ownership(account, deployment), KINDS)


def find_owned(
    ownership: Ownership, kinds: Iterable[str], *, progress: Callable[[str], None] = lambda _kind: None
) -> list[FoundResource]:
    """Everything of these kinds that the owner has, and what the tagging service names of others; else as above.

    `progress` is called with each kind before it is listed.
    """
    found: list[FoundResource] = []
    for name in kinds:
        progress(name)
        found += _of_kind(ownership, name)
    return [*found, *_unlisted(ownership)]


def find_buckets(deployment: str, account: Account) -> list[FoundResource]:
    """The deployment's buckets alone, as `find_resources` finds them."""
    return list(_of_kind(Ownership(account, deployment), _BUCKET))


def sweep(
    deployment: str,
    account: Account,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stuck_seconds: float = STUCK_SECONDS,
) -> list[FoundResource]:
    """Delete everything that belongs to the deployment; returns all that was found, with the outcome of each.

    `progress` is called with the numbers deleted and found. It gives up when nothing has changed for `stuck_seconds`.
    """
    return delete_found(account, find_resources(deployment, account), progress=progress, stuck_seconds=stuck_seconds)


def delete_found(
    account: Account,
    things: Iterable[FoundResource],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stuck_seconds: float = STUCK_SECONDS,
) -> list[FoundResource]:
    """Delete what `find_resources` or `find_owned` found; else as `sweep`."""
    found = {thing.key: thing for thing in things}
    end = time.monotonic() + LONGEST_SECONDS
    changed, pause, before = time.monotonic(), _FIRST_PAUSE, None
    while left := [thing for thing in found.values() if thing.is_pending]:
        being_deleted = any(thing.outcome == BEING_DELETED for thing in left)
        if (now := sorted((*thing.key, thing.outcome) for thing in left)) != before:
            before, changed, pause = now, time.monotonic(), _FIRST_PAUSE
        elif (not being_deleted and time.monotonic() - changed > stuck_seconds) or time.monotonic() > end:
            break
        for thing in left:
            if thing.outcome != BEING_DELETED:
                _delete(account, thing)
        _refresh(account, left)
        progress(sum(not thing.is_pending for thing in found.values()), len(found))
        if any(thing.is_pending for thing in left):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    return list(found.values())


def _of_kind(ownership: Ownership, name: str) -> Iterator[FoundResource]:
    kind, seen = ALL_KINDS[name], set()
    try:
        for identifier, record in kind.things(ownership.account):
            seen.add(identifier)
            yield from _if_owned(ownership, name, identifier, record)
    except (BotoCoreError, ClientError) as error:
        why = f"cannot be listed ({reason_of(error)}); try again with other credentials"
        yield FoundResource(kind=name, identifier=ALL, billed=kind.billed({}), outcome=UNVERIFIED, why=why)
        for named in {kind.identifier_in(arn) for arn in ownership.arns} - seen - {None}:
            yield from _if_owned(ownership, name, str(named), {})


def _if_owned(ownership: Ownership, name: str, identifier: str, record: ResourceRecord) -> Iterator[FoundResource]:
    """The resource, if it belongs to the deployment or its owner is unknown."""
    kind = ALL_KINDS[name]
    thing = FoundResource(kind=name, identifier=identifier, billed=kind.billed(record), record=record)
    try:
        if not _is_ours(ownership, kind, identifier, record):
            return
        thing.stack, is_of_another = ownership.stack_of(kind, identifier, record)
        if is_of_another:
            thing.outcome = KEPT
            thing.why = f"the stack {thing.stack} owns it, and exists; it goes with that stack"
        elif is_being_deleted(record):
            thing.outcome = BEING_DELETED
        elif kind.delete is None:
            thing.outcome, thing.why = LEFT, "Shoal deletes none of these; delete it yourself if you do not need it"
        else:
            _mark_if_kept(ownership.account, thing)
    except NameOnlyError as error:
        thing.outcome, thing.why = UNVERIFIED, str(error)
    except OwnershipUnknownError as error:
        thing.outcome, thing.why = UNVERIFIED, f"{error}; try again with other credentials"
    yield thing


def _is_ours(ownership: Ownership, kind: ResourceKind, identifier: str, record: ResourceRecord) -> bool:
    """Whether it belongs to the deployment, by its own service's list or by the tagging service.

    Raises OwnershipUnknownError when neither names it and one of them does not answer.
    """
    unknown = None
    try:  # without a record, only the tagging service can name it
        ours = bool(record) and (kind.owned(ownership, record) or ownership.owns_by_name(kind, identifier, record))
    except OwnershipUnknownError as error:
        ours, unknown = False, error
    if not ours and identifier not in map(kind.identifier_in, ownership.arns):
        if unknown:
            raise unknown
        return False
    return not kind.is_global or ownership.is_of_this_region(kind, identifier)


def _unlisted(ownership: Ownership) -> Iterator[FoundResource]:
    """What only the tagging service names, and each source that did not answer."""
    for arn in ownership.arns:
        if not any(part in arn for part in _NOT_REPORTED) and not any(
            kind.identifier_in(arn) for kind in ALL_KINDS.values()
        ):
            why = "only the tagging service names it: it is gone, or Shoal did not create it; check it yourself"
            yield FoundResource(kind=UNKNOWN, identifier=arn, billed=False, outcome=LEFT, why=why)
    for source, reason in ownership.failed_sources.items():
        why = f"did not answer ({reason}); this list lacks what only it reports"
        yield FoundResource(kind=UNKNOWN, identifier=f"({source})", billed=False, outcome=UNVERIFIED, why=why)


def _mark_if_kept(account: Account, thing: FoundResource) -> None:
    """Mark a bucket as KEPT if its data are kept and it is not empty. Raises OwnershipUnknownError if unknown."""
    if thing.kind != _BUCKET:
        return
    why, thing.runs = deletion.why_kept(account, thing.identifier)
    if why:
        thing.outcome, thing.why = KEPT, why


def _delete(account: Account, thing: FoundResource) -> None:
    delete = ALL_KINDS[thing.kind].delete
    assert delete is not None
    thing.outcome = LEFT
    try:
        _mark_if_kept(account, thing)  # it may no longer be empty
        if thing.outcome == KEPT:
            return
        delete(account, thing.identifier, thing.record)
    except (BotoCoreError, ClientError) as error:
        thing.why = reason_of(error)
    except OwnershipUnknownError as error:
        thing.outcome, thing.why = UNVERIFIED, f"{error}; try again with other credentials"
    except ShoalError as error:
        thing.why = str(error)
    else:
        thing.why = _STILL_LISTED


def _refresh(account: Account, things: Iterable[FoundResource]) -> None:
    """List them again, and update their outcomes."""
    things = list(things)
    for name in {thing.kind for thing in things}:
        those = [thing for thing in things if thing.kind == name]
        try:
            listed = dict(ALL_KINDS[name].things(account))
        except (BotoCoreError, ClientError) as error:
            for thing in those:
                if thing.outcome == BEING_DELETED or thing.why == _STILL_LISTED:  # a refused deletion keeps its reason
                    thing.outcome, thing.why = UNVERIFIED, f"it was deleted, but cannot be listed ({reason_of(error)})"
            continue
        for thing in those:
            _update_outcome(thing, listed)


def _update_outcome(thing: FoundResource, listed: Mapping[str, ResourceRecord]) -> None:
    if thing.identifier not in listed:
        thing.outcome, thing.why = DELETED, ""
    elif is_being_deleted(listed[thing.identifier]):
        thing.outcome, thing.why = BEING_DELETED, ""
    elif thing.outcome == BEING_DELETED:  # its deletion failed
        thing.outcome = LEFT
    else:
        thing.record = listed[thing.identifier]
