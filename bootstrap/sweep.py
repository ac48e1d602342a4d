"""Finds everything of a deployment that is left in an account, whatever became of its stack, and deletes it.

Ownership is asked twice, of each service's own list and of the tagging service: either misses some. The easy mistake
is to give up at the first refusal: networks let go of what was in them minutes later, so what fails is tried again as
long as anything else still changes.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.account import Account, Record
from bootstrap.errors import ShoalError
from bootstrap.kinds import KINDS, Kind, is_going
from bootstrap.ownership import Claim, read_tags
from infra import topology

LONGEST_SECONDS = 1200.0
STUCK_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0

FOUND, DELETED, KEPT, GOING, LEFT = "goes", "deleted", "stays", "is being deleted", "is left"
_ALL = "(all)"
# A stack is the deployment's by its name, a rule goes with its group, and a request for spot instances stays listed
# long after its end.
_BY_THE_WAY = (":stack/", ":security-group-rule/", ":spot-instances-request/")
UNKNOWN = "other"
"""The kind of what only the tagging service names, and no row of the table lists."""


@dataclass(kw_only=True)
class Thing:
    """One thing of the deployment, and what became of it."""

    kind: str
    identifier: str
    billed: bool
    outcome: str = FOUND
    why: str = ""
    record: Record = field(default_factory=dict, repr=False)

    @property
    def costs(self) -> bool:
        """Whether it is left and goes on to cost money."""
        return self.billed and self.outcome in (FOUND, LEFT)

    @property
    def is_in_the_way(self) -> bool:
        """Whether it can be deleted, and has not been."""
        kind = KINDS.get(self.kind)
        return (
            self.outcome in (FOUND, LEFT, GOING) and self.identifier != _ALL and kind is not None and bool(kind.delete)
        )

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all others."""
        return self.kind, self.identifier


def find(deployment: str, account: Account) -> list[Thing]:
    """Everything that is the deployment's, in the order of deleting; what is to be kept says so.

    What a service refuses to list is a thing that is left: nobody has seen that it is gone.
    """
    claim = Claim(account, deployment)
    found: list[Thing] = []
    for name in KINDS:
        try:
            found += _of_kind(claim, name)
        except ClientError as error:
            found.append(_unseen(name, error))
    return [*found, *_unlisted(claim)]


def sweep(
    deployment: str,
    account: Account,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stuck_seconds: float = STUCK_SECONDS,
) -> list[Thing]:
    """Delete everything that is the deployment's; returns all that was found, with what became of each.

    `progress` is called with how many are gone and how many were found. Gives up on what is left when nothing has
    changed for `stuck_seconds`.
    """
    found = {thing.key: thing for thing in find(deployment, account)}
    end = time.monotonic() + LONGEST_SECONDS
    changed, pause, before = time.monotonic(), _FIRST_PAUSE, None
    while left := [thing for thing in found.values() if thing.is_in_the_way]:
        going = any(thing.outcome == GOING for thing in left)
        if (now := sorted((*thing.key, thing.outcome) for thing in left)) != before:
            before, changed, pause = now, time.monotonic(), _FIRST_PAUSE
        elif (not going and time.monotonic() - changed > stuck_seconds) or time.monotonic() > end:
            break
        for thing in left:
            if thing.outcome != GOING:
                _delete(account, thing)
        _look_again(account, left)
        progress(sum(not thing.is_in_the_way for thing in found.values()), len(found))
        if any(thing.is_in_the_way for thing in left):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    return list(found.values())


def is_empty(account: Account, bucket: str) -> bool:
    """Whether a bucket holds nothing, older versions included."""
    page = account.client("s3").list_object_versions(Bucket=bucket, MaxKeys=1)
    return not page.get("Versions") and not page.get("DeleteMarkers")


def _of_kind(claim: Claim, name: str) -> Iterator[Thing]:
    kind = KINDS[name]
    for identifier, record in kind.things(claim.account):
        if not _is_ours(claim, kind, identifier, record):
            continue
        thing = Thing(kind=name, identifier=identifier, billed=kind.billed(record), record=record)
        if is_going(record):
            thing.outcome = GOING
        elif kind.delete is None:
            thing.outcome, thing.why = LEFT, "Shoal makes none of these; delete it yourself if you do not need it"
        elif name == "s3 bucket" and _keeps(claim.account, identifier):
            thing.outcome, thing.why = KEPT, f"its topology keeps it; to delete it: aws s3 rb --force s3://{identifier}"
        yield thing


def _is_ours(claim: Claim, kind: Kind, identifier: str, record: Record) -> bool:
    ours = kind.owned(claim, record) or any(identifier in (arn, kind.named_by(arn)) for arn in claim.arns)
    return ours and not (kind.everywhere and claim.elsewhere)


def _unseen(name: str, error: ClientError) -> Thing:
    """A kind that may not be listed; what there is of it may cost as much as any of it does."""
    why = f"cannot be listed ({error.response['Error'].get('Message') or error}); look with other credentials"
    return Thing(kind=name, identifier=_ALL, billed=KINDS[name].billed({}), outcome=LEFT, why=why)


def _unlisted(claim: Claim) -> Iterator[Thing]:
    """What no row of the table is about."""
    if claim.untold:
        why = f"cannot be asked ({claim.untold}); what no service's own list tells of is not seen"
        yield Thing(kind=UNKNOWN, identifier="(tagging service)", billed=False, outcome=LEFT, why=why)
    for arn in claim.arns:
        if not any(part in arn for part in _BY_THE_WAY) and not any(kind.named_by(arn) for kind in KINDS.values()):
            why = "only the tagging service names it: it is gone, or not of Shoal's making; look at it yourself"
            yield Thing(kind=UNKNOWN, identifier=arn, billed=False, outcome=LEFT, why=why)


def _keeps(account: Account, bucket: str) -> bool:
    """Whether a bucket's tag says that its data outlive the stack, and it holds any."""
    try:
        tags = read_tags(account.client("s3").get_bucket_tagging(Bucket=bucket)["TagSet"])
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchTagSet", "NoSuchBucket"):
            return False
        raise  # nobody may delete a bucket whose tags nobody has read
    return tags.get(topology.TAG_KEEP) == "true" and not is_empty(account, bucket)


def _delete(account: Account, thing: Thing) -> None:
    delete = KINDS[thing.kind].delete
    assert delete is not None
    thing.outcome = LEFT
    try:
        delete(account, thing.identifier, thing.record)
    except ClientError as error:
        thing.why = error.response["Error"].get("Message") or str(error)
    except (BotoCoreError, ShoalError) as error:
        thing.why = str(error)
    else:
        thing.why = "it was deleted, and is still listed"


def _look_again(account: Account, things: Iterable[Thing]) -> None:
    """See which of them are gone, or about to go."""
    things = list(things)
    for name in {thing.kind for thing in things}:
        listed = dict(KINDS[name].things(account))
        for thing in things:
            if thing.kind != name:
                continue
            if thing.identifier not in listed:
                thing.outcome, thing.why = DELETED, ""
            elif is_going(listed[thing.identifier]):
                thing.outcome, thing.why = GOING, ""
            elif thing.outcome == GOING:  # it was going, and came back
                thing.outcome = LEFT
            else:
                thing.record = listed[thing.identifier]
