"""What is left in an AWS account of any stack, as plain data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal_guard.sweep.account import Account
from shoal_guard.sweep.monthly import price_of
from shoal_guard.sweep.stack_owner import StackOwner
from shoal_guard.sweep.sweeping import UNVERIFIED, delete_found, find_owned

if TYPE_CHECKING:
    import boto3


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something that is left, or that a service did not tell."""

    kind: str
    """`volume`, `log group`, `rds snapshot` and so on; `other` is what AWS's tagging service alone names."""
    identifier: str
    """The service's own: an id, a name or an ARN; `(all)` where a service did not list a kind."""
    dollars_a_month: float | None
    """What it costs at list prices; None where that is not known."""
    bound: str
    """`at least` or `at most` where the price is no more than that; else empty."""
    costs: bool
    """Whether it is there, and billed by time or size. Of what was deleted it is False."""
    is_certain: bool
    """False where a service did not tell: it may be there or not, and may be another's."""
    outcome: str
    """`goes`, `deleted`, `is left` and so on, the outcome of the sweep."""
    reason: str
    """Why it is left, or why it is not certain; else empty."""


def left_of(
    stack: str = "", *, tag: str = "", prefix: str = "", session: "boto3.Session | None" = None, delete: bool = False
) -> list[Leftover]:
    """List what is left in an account and region, service by service; delete it if asked.

    With `delete` data go, too: databases without a last snapshot, buckets with all versions. Buckets with the tag
    `shoal:keep` (`true` or `unfetched`) stay, and so do those whose tags cannot be read.

    Args:
        stack: What a CloudFormation stack of exactly this name has, or has left.
        tag: What has this tag, KEY=VALUE, or KEY with whatever value. One of the three is given.
        prefix: What has a name, or is of a stack whose name, begins with this.
        session: Whose account and region (default: those of AWS's configuration).
        delete: Delete all of it, in an order that works, and try again what others still hold.

    Returns:
        Everything that was found, in the order of deletion.

    Raises:
        ValueError: Not one of the three is given, or it is not valid.
        SweepError: With `delete`, a stack of these exists, which CloudFormation has to delete first, or may exist. The
            file of the region's prices is broken.
        botocore.exceptions.BotoCoreError: There are no credentials, no region, or no network.
        botocore.exceptions.ClientError: AWS does not accept the credentials.
    """
    account = Account(session)
    owner = StackOwner(account, stack=stack, tag=tag, prefix=prefix)
    account.number()  # without credentials every service would be reported as not answering
    if delete:
        owner.check_deletable()
    things = find_owned(owner)
    prices = {thing.key: price_of(account, thing) for thing in things}
    done = delete_found(owner, things) if delete else things
    return [
        Leftover(
            kind=thing.kind,
            identifier=thing.identifier,
            dollars_a_month=prices[thing.key].dollars,
            bound=prices[thing.key].bound,
            costs=thing.costs,
            is_certain=thing.outcome != UNVERIFIED,
            outcome=thing.outcome,
            reason=thing.why,
        )
        for thing in done
    ]
