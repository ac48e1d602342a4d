"""`left_of`, which lists the resources that a stack left behind in an AWS account and optionally deletes them."""

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
    """A resource that a stack left behind, or a kind of resource that a service did not list."""

    kind: str
    """Kind of the resource, such as `volume`, `log group` or `rds snapshot`. `other` means that only AWS's tagging
    service lists the resource."""
    identifier: str
    """Id, name or ARN by which the service identifies the resource. `(all)` means that the service did not list the
    kind."""
    dollars_a_month: float | None
    """Dollars per month at list prices; None if unknown."""
    bound: str
    """`at least` or `at most` if `dollars_a_month` is only a bound; empty otherwise."""
    costs: bool
    """Whether the resource exists and is billed by time or size. False after its deletion."""
    is_certain: bool
    """False if a service did not answer. It is then unknown whether the resource exists and belongs to the stack."""
    outcome: str
    """Outcome of the sweep: `to be deleted`, `deleted`, `kept` or `left`."""
    reason: str
    """Reason why the resource is left or uncertain; empty otherwise."""


def left_of(
    stack: str = "", *, tag: str = "", prefix: str = "", session: "boto3.Session | None" = None, delete: bool = False
) -> list[Leftover]:
    """List the resources that are left of a stack, a tag or a name prefix in an account, and optionally delete them.

    Pass exactly one of `stack`, `tag` and `prefix`. Deletion includes data: databases are deleted without a final
    snapshot, and buckets with all versions. Buckets with the tag `shoal:keep` (`true` or `unfetched`) and buckets with
    unreadable tags are not deleted.

    Args:
        stack: Exact name of a CloudFormation stack, which may already be deleted.
        tag: Tag of the resources: KEY=VALUE, or KEY for any value.
        prefix: Prefix of the names of the resources, or of the names of their stacks.
        session: Session for the account and region (default: AWS's configuration).
        delete: Delete the resources in a safe order. Retry the deletion of resources that are still in use.

    Returns:
        All resources found, in the order of deletion.

    Raises:
        ValueError: Not exactly one of `stack`, `tag` and `prefix` is given, or the value is not valid.
        SweepError: With `delete`, a matching stack exists or may exist, and CloudFormation must delete it first. Also
            raised if the price list of the region is broken.
        botocore.exceptions.BotoCoreError: Credentials, region or network are missing.
        botocore.exceptions.ClientError: AWS rejects the credentials.
    """
    account = Account(session)
    owner = StackOwner(account, stack=stack, tag=tag, prefix=prefix)
    account.number()  # fail here if credentials are missing; otherwise every service would be reported as failed
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
