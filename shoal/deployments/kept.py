"""Buckets that outlive a deployment's stack, and the monthly cost of their content."""

from collections.abc import Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from infra import catalog
from shoal.aws.account import Account, reason_of
from shoal.deployments.removal.sweep import ALL, KEPT, UNVERIFIED, FoundResource, find_buckets

_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class KeptBucket:
    """Bucket that outlives the stack of its deployment."""

    bucket: str
    objects: int | None
    """Number of object versions. If Shoal cannot list the versions, the values of `objects` and `bytes` are unknown
    (None)."""
    bytes: int | None
    monthly: float | None
    """Dollars per month. None if Shoal cannot list the content, or has no price for the region."""
    why: str
    """Reason why the bucket is kept."""


def find_kept(deployment: str, account: Account) -> tuple[list[KeptBucket], list[str]]:
    """Return the buckets that outlive a deployment's stack, and a message for each bucket that Shoal cannot check."""
    return measure_kept(account, buckets := find_buckets(deployment, account)), [
        f"Shoal cannot tell whether {'a bucket' if each.identifier == ALL else f's3://{each.identifier}'} is kept: "
        f"{each.why}"
        for each in buckets
        if each.outcome == UNVERIFIED
    ]


def measure_kept(account: Account, found: Sequence[FoundResource]) -> list[KeptBucket]:
    return [kept_bucket(account, thing.identifier, thing.why) for thing in found if thing.outcome == KEPT]


def kept_bucket(account: Account, bucket: str, why: str) -> KeptBucket:
    """Return a kept bucket with its measured size and monthly cost. `why` is the reason why it is kept."""
    count, size = 0, 0
    try:
        for each in account.items("s3", "list_object_versions", "Versions", Bucket=bucket):
            count, size = count + 1, size + each["Size"]
    except (BotoCoreError, ClientError) as error:
        why = f"{why}; Shoal cannot list its content: {reason_of(error)}"
        return KeptBucket(bucket=bucket, objects=None, bytes=None, monthly=None, why=why)
    price = catalog.prices(account.region).other.s3_gib_month
    monthly = None if price is None else size / _GIB * price
    return KeptBucket(bucket=bucket, objects=count, bytes=size, monthly=monthly, why=why)
