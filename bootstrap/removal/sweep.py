"""Finds everything of a deployment that is left in an account, whatever the state of its stack, and deletes it."""

from collections.abc import Callable

from shoal_guard.sweep.sweeping import BUCKET, STUCK_SECONDS, FoundResource, delete_found, find_owned, of_kind

from bootstrap.aws.account import Account
from bootstrap.removal.ownership import KINDS, Ownership


def find_resources(deployment: str, account: Account) -> list[FoundResource]:
    """Everything that belongs to the deployment, as `find_owned` returns it."""
    return find_owned(Ownership(account, deployment), KINDS)


def find_buckets(deployment: str, account: Account) -> list[FoundResource]:
    """The deployment's buckets alone, as `find_resources` finds them."""
    return list(of_kind(Ownership(account, deployment), BUCKET))


def sweep(
    deployment: str,
    account: Account,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stuck_seconds: float = STUCK_SECONDS,
) -> list[FoundResource]:
    """Delete everything that belongs to the deployment, as `delete_found` does."""
    found = find_resources(deployment, account)
    return delete_found(Ownership(account, deployment), found, progress=progress, stuck_seconds=stuck_seconds)
