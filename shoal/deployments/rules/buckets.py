"""Rule for the existing buckets that a topology names: its data bucket, and the buckets of its `inputs`.

S3's HeadBucket requires permission to list the whole bucket. Of an input, nodes list only the keys below its address,
so a refused HeadBucket leaves open whether the input is usable.
"""

from collections.abc import Iterator

from botocore.exceptions import ClientError

from infra import addresses
from shoal.deployments.rules import PreflightContext


def bucket_unusable(context: PreflightContext) -> Iterator[str]:
    """Yield a message for each bucket that does not exist or is in a different region, and for a data bucket that
    belongs to a different account.

    The policy ShoalBoundary does not allow roles to write to buckets of other accounts.
    """
    s3, region, own = context.account.client("s3"), context.topology.region, context.topology.data.bucket
    named = [(f"inputs {at}", addresses.split(each)[0]) for at, each in enumerate(context.topology.inputs, 1)]
    for field, bucket in [*([("data, bucket", own)] if own else []), *named]:
        owner = {"ExpectedBucketOwner": context.account.number()} if field.startswith("data") else {}
        try:
            there = s3.head_bucket(Bucket=bucket, **owner).get("BucketRegion", region)
        except ClientError as error:
            match error.response["Error"]["Code"]:
                case "404" | "NoSuchBucket":
                    command = f"aws s3 mb s3://{bucket} --region {region}"
                    yield f"{field}: there is no bucket '{bucket}'; create it: {command}"
                    continue
                case "403" | "AccessDenied" if owner:
                    yield (
                        f"{field}: '{bucket}' belongs to a different account, or denies you access; write a bucket of "
                        "your account."
                    )
                    continue
                case "301" | "PermanentRedirect":
                    headers = error.response["ResponseMetadata"]["HTTPHeaders"]
                    there = headers.get("x-amz-bucket-region", "another region")
                case _:
                    raise
        if there != region:
            yield (
                f"{field}: '{bucket}' is in {there}, but the deployment is in {region}, and AWS charges for traffic "
                f"between regions; write `region: {there}`, or a bucket in {region}."
            )
