"""Search for all resources of a deployment in an account, and deletion of these resources, whatever the state of its
stack."""

from collections.abc import Callable

from shoal_guard.sweep.sweeping import BUCKET, STUCK_SECONDS, FoundResource, delete_found, find_owned, of_kind

from bootstrap.aws.account import Account
from bootstrap.removal.ownership import Ownership


def find_resources(deployment: str, account: Account) -> list[FoundResource]:
    """Return all resources of the deployment that `find_owned` finds."""
    return find_owned(Ownership(account, deployment))


def find_buckets(deployment: str, account: Account) -> list[FoundResource]:
    """Return only those resources of `find_resources` that are buckets."""
    return list(of_kind(Ownership(account, deployment), BUCKET))


def sweep(
    deployment: str,
    account: Account,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stuck_seconds: float = STUCK_SECONDS,
) -> list[FoundResource]:
    """Delete all resources of the deployment with `delete_found`, and return them."""
    resources = find_resources(deployment, account)
    return delete_found(Ownership(account, deployment), resources, progress=progress, stuck_seconds=stuck_seconds)
