"""Finds all resources of a deployment in an account, whatever the state of its stack, and deletes them.

Resources come from two sources, each service's own list and the tagging service, because each misses some resources.
The sweep retries failed deletions as long as other deletions succeed, because AWS deletes a network only minutes after
the resources in it. If a service does not list a kind of resource, resources of this kind count as `UNVERIFIED`, not as
deleted.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ShoalError
from shoal.aws.account import Account, ResourceRecord, reason_of
from shoal.deployments.removal.kinds import KINDS, ResourceKind, is_being_deleted
from shoal.deployments.removal.ownership import Ownership, OwnershipUnknownError, keep_tag, why_kept

LONGEST_SECONDS = 1200.0
STUCK_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0

FOUND, DELETED, KEPT, BEING_DELETED, LEFT = "to be deleted", "deleted", "kept", "being deleted", "left"
UNVERIFIED = "unknown"
"""Outcome of a resource if its existence or its owner is unknown. The sweep does not delete such a resource."""
ALL = "(all)"
"""Identifier that stands for all resources of a kind that AWS did not list."""
_STILL_LISTED = "it was deleted, but is still listed"
# Do not report these if only the tagging service lists them. A stack is found by its name, a rule is deleted with its
# group, and a spot request is listed long after its end.
_NOT_REPORTED = (":stack/", ":security-group-rule/", ":spot-instances-request/")
BUCKET = "s3 bucket"
UNKNOWN = "other"
"""Kind of a resource that only the tagging service lists, and that has no entry in `KINDS`."""


@dataclass(kw_only=True)
class FoundResource:
    """A resource of a deployment, and the outcome of its deletion."""

    kind: str
    identifier: str
    billed: bool
    outcome: str = FOUND
    why: str = ""
    runs: Sequence[str] = ()
    """Runs in this bucket that were not fetched. The bucket is kept because of these runs."""
    record: ResourceRecord = field(default_factory=dict, repr=False)

    @property
    def costs(self) -> bool:
        """Whether the resource still exists and costs money."""
        return self.billed and self.outcome in (FOUND, LEFT)

    @property
    def is_pending(self) -> bool:
        return self.outcome in (FOUND, LEFT, BEING_DELETED) and self.kind in KINDS

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.identifier


def find_resources(deployment: str, account: Account) -> list[FoundResource]:
    """Return a deployment's resources in the order of deletion, and then those that only the tagging service lists.

    Resources that must be kept have the outcome KEPT. If a service does not list a kind, the result has one entry for
    it, with the outcome UNVERIFIED.
    """
    owner = Ownership(account, deployment)
    found = [thing for name in KINDS for thing in _of_kind(owner, name)]
    return [*found, *_unlisted(owner)]


def find_buckets(deployment: str, account: Account) -> list[FoundResource]:
    """Return only those resources of `find_resources` that are buckets."""
    return list(_of_kind(Ownership(account, deployment), BUCKET))


def sweep(
    deployment: str,
    account: Account,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stuck_seconds: float = STUCK_SECONDS,
) -> list[FoundResource]:
    """Delete all resources of a deployment that `find_resources` finds, and return them with their outcomes.

    `progress` is called with the number of finished resources and the number of all resources. The sweep gives up if no
    outcome changes for `stuck_seconds`.
    """
    found = {thing.key: thing for thing in find_resources(deployment, account)}
    owner = Ownership(account, deployment)
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
                _delete(owner, thing)
        _refresh(account, left)
        progress(sum(not thing.is_pending for thing in found.values()), len(found))
        if any(thing.is_pending for thing in left):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    return list(found.values())


def _of_kind(owner: Ownership, name: str) -> Iterator[FoundResource]:
    kind, seen = KINDS[name], set()
    try:
        for identifier, record in kind.records(owner.account):
            seen.add(identifier)
            yield from _if_owned(owner, name, identifier, record)
    except (BotoCoreError, ClientError) as error:
        call = f"{error.operation_name}: " if isinstance(error, ClientError) else ""
        why = f"AWS did not list it ({call}{reason_of(error)}); try again with other credentials"
        yield FoundResource(kind=name, identifier=ALL, billed=kind.billed({}), outcome=UNVERIFIED, why=why)
        for named in {kind.identifier_in(arn) for arn in owner.arns} - seen - {None}:
            yield from _if_owned(owner, name, str(named), {})


def _if_owned(owner: Ownership, name: str, identifier: str, record: ResourceRecord) -> Iterator[FoundResource]:
    """Yield the resource with its outcome if it belongs to the deployment or if its owner is unknown."""
    kind = KINDS[name]
    thing = FoundResource(kind=name, identifier=identifier, billed=kind.billed(record), record=record)
    try:
        if not _is_ours(owner, kind, identifier, record):
            return
        if is_being_deleted(record):
            thing.outcome = BEING_DELETED
        else:
            _mark_if_kept(owner, thing)
    except OwnershipUnknownError as error:
        thing.outcome, thing.why = UNVERIFIED, f"{error}; try again with other credentials"
    yield thing


def _is_ours(owner: Ownership, kind: ResourceKind, identifier: str, record: ResourceRecord) -> bool:
    """Return whether a resource belongs to the deployment, according to its service's list or the tagging service.

    Raises OwnershipUnknownError if neither source assigns it to the owner and one of them does not answer.
    """
    unknown = None
    try:  # without a record, only the tagging service can assign the resource
        ours = bool(record) and kind.owned(owner, record)
    except OwnershipUnknownError as error:
        ours, unknown = False, error
    if not ours and identifier not in map(kind.identifier_in, owner.arns):
        if unknown:
            raise unknown
        return False
    return not kind.is_global or owner.is_of_this_region(kind, identifier)


def _unlisted(owner: Ownership) -> Iterator[FoundResource]:
    """Yield the resources that only the tagging service lists, and one entry for each source that did not answer."""
    for arn in owner.arns:
        if not any(part in arn for part in _NOT_REPORTED) and not any(
            kind.identifier_in(arn) for kind in KINDS.values()
        ):
            why = "only the tagging service lists it, so it no longer exists or its kind is unknown; check it yourself"
            yield FoundResource(kind=UNKNOWN, identifier=arn, billed=False, outcome=LEFT, why=why)
    for source, reason in owner.failed_sources.items():
        why = f"did not answer ({reason}); resources that only this source lists are missing here"
        yield FoundResource(kind=UNKNOWN, identifier=f"({source})", billed=False, outcome=UNVERIFIED, why=why)


def _mark_if_kept(owner: Ownership, thing: FoundResource) -> None:
    """Mark a bucket as KEPT if its data must be kept. Raises OwnershipUnknownError if this is unknown."""
    if thing.kind != BUCKET:
        return
    why, thing.runs = why_kept(owner.account, thing.identifier)
    if why:
        thing.outcome, thing.why = KEPT, why


def _delete(owner: Ownership, thing: FoundResource) -> None:
    delete = KINDS[thing.kind].delete
    assert delete is not None
    thing.outcome = LEFT
    try:
        _mark_if_kept(owner, thing)  # check again, because runs may have arrived since the first check
        if thing.outcome == KEPT:
            return
        if thing.kind == BUCKET and keep_tag(owner.account, thing.identifier) == "true":  # deleted only if it is empty
            owner.account.client("s3").delete_bucket(Bucket=thing.identifier)
        else:
            delete(owner.account, thing.identifier, thing.record)
    except (BotoCoreError, ClientError) as error:
        thing.why = reason_of(error)
    except OwnershipUnknownError as error:
        thing.outcome, thing.why = UNVERIFIED, f"{error}; try again with other credentials"
    except ShoalError as error:
        thing.why = str(error)
    else:
        thing.why = _STILL_LISTED


def _refresh(account: Account, things: Iterable[FoundResource]) -> None:
    """List the resources again, and update their outcomes."""
    things = list(things)
    for name in {thing.kind for thing in things}:
        those = [thing for thing in things if thing.kind == name]
        try:
            listed = dict(KINDS[name].records(account))
        except (BotoCoreError, ClientError) as error:
            for thing in those:
                if thing.outcome == BEING_DELETED or thing.why == _STILL_LISTED:  # else keep the refusal
                    thing.outcome, thing.why = (
                        UNVERIFIED,
                        f"it was deleted, but AWS did not list it ({reason_of(error)})",
                    )
            continue
        for thing in those:
            _update_outcome(thing, listed)


def _update_outcome(thing: FoundResource, listed: Mapping[str, ResourceRecord]) -> None:
    if thing.identifier not in listed:
        thing.outcome, thing.why = DELETED, ""
    elif is_being_deleted(listed[thing.identifier]):
        thing.outcome, thing.why = BEING_DELETED, ""
    elif thing.outcome == BEING_DELETED:  # AWS started the deletion, but it failed
        thing.outcome = LEFT
    else:
        thing.record = listed[thing.identifier]
