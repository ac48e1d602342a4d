"""`left_of`: list, and optionally delete, what a stack left behind in an AWS account, as plain data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal_guard.sweep.account import Account
from shoal_guard.sweep.monthly_prices import price_of
from shoal_guard.sweep.stack_owner import StackOwner
from shoal_guard.sweep.sweeping import UNVERIFIED, delete_found, find_owned

if TYPE_CHECKING:
    import boto3


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A resource that is left, or a list that a service did not return."""

    kind: str
    """Kind of the resource, such as `volume`, `log group` or `rds snapshot`. `other` is a resource that only AWS's
    tagging service names."""
    identifier: str
    """Id, name or ARN that the service uses. `(all)` stands for a kind that a service did not list."""
    dollars_a_month: float | None
    """Cost per month at list prices; None if unknown."""
    bound: str
    """`at least` or `at most` if `dollars_a_month` is only a bound; empty otherwise."""
    costs: bool
    """True if the resource exists and is billed by time or size. False for a deleted resource."""
    is_certain: bool
    """False if a service did not answer: the resource may not exist, or may belong to something else."""
    outcome: str
    """Outcome of the sweep: `goes`, `deleted`, `is left` and so on."""
    reason: str
    """Reason why the resource is left or uncertain; empty otherwise."""


def left_of(
    stack: str = "", *, tag: str = "", prefix: str = "", session: "boto3.Session | None" = None, delete: bool = False
) -> list[Leftover]:
    """List what a stack, a tag or a name prefix left in an account and region, and optionally delete it.

    Give exactly one of `stack`, `tag` and `prefix`. Deletion includes data: databases without a final snapshot, and
    buckets with all versions. It keeps buckets with the tag `shoal:keep` (`true` or `unfetched`) and buckets with
    unreadable tags.

    Args:
        stack: Exact name of a CloudFormation stack. It may be deleted.
        tag: Tag of the resources: KEY=VALUE, or KEY for any value.
        prefix: Prefix of the names of resources, or of the names of their stacks.
        session: Session of an account and region (default: AWS's configuration).
        delete: Delete the resources in a safe order, and retry those that other resources still hold.

    Returns:
        All resources found, in the order of deletion.

    Raises:
        ValueError: Not exactly one of the three is given, or its value is not valid.
        SweepError: With `delete`, a matching stack exists or may exist: CloudFormation must delete it first. Also
            raised if the price file of the region is broken.
        botocore.exceptions.BotoCoreError: Credentials, region or network are missing.
        botocore.exceptions.ClientError: AWS rejects the credentials.
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
