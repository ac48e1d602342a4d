"""Rule for the existing buckets that a topology names: its data bucket, and the buckets of its `inputs`.

For an input, permission to list the keys below its address suffices. S3's HeadBucket requires permission to list the
whole bucket, so a refused HeadBucket does not yet mean that the input is unusable.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.lifecycle.rules import PreflightContext
from infra import addresses
from infra.topology import Topology

_MISSING = ("404", "NoSuchBucket")
_REFUSED = ("403", "AccessDenied")
_MOVED = ("301", "PermanentRedirect")


def bucket_unusable(context: PreflightContext) -> Iterator[str]:
    """Yield a message for each bucket that does not exist, is in a different region, or refuses access to this account.

    The data bucket must belong to this account, because the policy ShoalBoundary does not allow roles to write to
    buckets of other accounts.
    """
    s3, region = context.account.client("s3"), context.topology.region
    for field, bucket, key in _named(context.topology):
        try:
            owner = {"ExpectedBucketOwner": context.account.number()} if key is None else {}
            there = _region_of(s3, bucket, owner) or region
        except ClientError as error:
            if _code(error) in _MISSING:
                command = f"aws s3 mb s3://{bucket} --region {region}"
                yield f"{field}: there is no bucket '{bucket}'; create it: {command}"
            elif _code(error) not in _REFUSED:
                raise
            elif key is None:
                yield (
                    f"{field}: '{bucket}' belongs to a different account, or denies you access; write a bucket of your "
                    "account."
                )
            elif not _may_list(s3, bucket, key):
                yield (
                    f"{field}: you are not allowed to list s3://{bucket}/{key}; ask its owner to allow your account to "
                    "list and read it, or write an address of your account."
                )
            continue
        if there != region:
            yield (
                f"{field}: '{bucket}' is in {there}, but the deployment is in {region}, and AWS charges for traffic "
                f"between regions; write `region: {there}`, or a bucket in {region}."
            )


def _named(topology: Topology) -> Iterator[tuple[str, str, str | None]]:
    """Yield each field that names a bucket, with the bucket and the key below it. The key of the data bucket is
    None."""
    if topology.data.bucket:
        yield "data, bucket", topology.data.bucket, None
    for number, address in enumerate(topology.inputs, 1):
        yield f"inputs {number}", *addresses.split(address)


def _region_of(s3: Any, bucket: str, owner: Mapping[str, str]) -> str | None:
    try:
        region: str | None = s3.head_bucket(Bucket=bucket, **owner).get("BucketRegion")
    except ClientError as error:
        if _code(error) not in _MOVED:
            raise
        headers = error.response["ResponseMetadata"]["HTTPHeaders"]
        region = headers.get("x-amz-bucket-region", "another region")
    return region


def _may_list(s3: Any, bucket: str, key: str) -> bool:
    try:
        s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
    except ClientError as error:
        if _code(error) not in _REFUSED:
            raise
        return False
    return True


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]
