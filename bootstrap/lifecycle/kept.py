"""The buckets of a deployment that outlive its stack, with what their content costs a month."""

from collections.abc import Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.sweep.account import reason_of
from shoal_guard.sweep.sweeping import ALL, KEPT, UNVERIFIED, FoundResource

from bootstrap.aws.account import Account
from bootstrap.removal.sweep import find_buckets
from infra import catalog

_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class KeptBucket:
    bucket: str
    objects: int | None
    """How many, older versions included; None where they cannot be listed, and `bytes` likewise."""
    bytes: int | None
    monthly: float | None
    """Dollars a month; None where the content cannot be listed, or without a price list for the region."""
    why: str


def find_kept(deployment: str, account: Account) -> tuple[list[KeptBucket], list[str]]:
    """The buckets that stay, or stayed, after the deployment's stack, and a sentence for each that cannot be told."""
    return among(account, found := find_buckets(deployment, account)), [
        f"it is unknown whether {'a bucket' if each.identifier == ALL else f's3://{each.identifier}'} stays: {each.why}"
        for each in found
        if each.outcome == UNVERIFIED
    ]


def among(account: Account, found: Sequence[FoundResource]) -> list[KeptBucket]:
    return [kept_bucket(account, thing.identifier, thing.why) for thing in found if thing.outcome == KEPT]


def kept_bucket(account: Account, bucket: str, why: str) -> KeptBucket:
    """A bucket that stays, with its size and price."""
    count, size = 0, 0
    try:
        for each in account.items("s3", "list_object_versions", "Versions", Bucket=bucket):
            count, size = count + 1, size + each["Size"]
    except (BotoCoreError, ClientError) as error:
        why = f"{why}; its content cannot be listed: {reason_of(error)}"
        return KeptBucket(bucket=bucket, objects=None, bytes=None, monthly=None, why=why)
    price = catalog.prices(account.region).other.s3_gib_month
    monthly = None if price is None else size / _GIB * price
    return KeptBucket(bucket=bucket, objects=count, bytes=size, monthly=monthly, why=why)
