"""Creates the three buckets of a deployment.

AWS deletes only empty buckets. So everything that writes to a bucket must be deleted before `Cleanup` empties the
bucket.
"""

from aws_cdk import CustomResource, Duration, RemovalPolicy, Tags
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct
from shoal_guard.clean_bucket import ABANDONED, CleanBucket, accept_private, private
from shoal_guard.cleanup import Cleanup

from common import names
from infra import parts


class Buckets(Construct):
    """Buckets of a deployment: `raw` (raw reviews), `data` (datasets, runs, node statuses) and `log` (EMR logs).

    `emptied` are the custom resources that empty the buckets. Resources that write to a bucket must depend on
    `emptied`. Shoal never empties or deletes an existing data bucket, and does not change its policy or lifecycle.
    """

    raw: s3.Bucket
    data: s3.IBucket
    log: s3.Bucket
    emptied: list[CustomResource]

    def __init__(self, scope: Construct, construct_id: str, *, spec: parts.DataSpec, key: kms.IKey | None) -> None:
        """Create the buckets. An existing data bucket is used instead of a new one. If `key` is not None, it encrypts
        the objects instead of S3's key."""
        super().__init__(scope, construct_id)
        self._key = key
        expiring = s3.LifecycleRule(expiration=Duration.days(30))
        self.raw = raw = _OwnBucket(self, "Raw", encryption_key=key)
        self.log = log = _OwnBucket(self, "Log", encryption_key=key, lifecycle_rules=[expiring])
        self.emptied = [raw.emptied, log.emptied]
        self.data = s3.Bucket.from_bucket_name(self, "Data", spec.bucket) if spec.bucket else self._data(keep=spec.keep)

    def _data(self, *, keep: bool | None) -> s3.Bucket:
        """Create the data bucket.

        With `keep=True`, the bucket outlives the stack. With None, the bucket outlives the stack only while it contains
        runs that were not fetched. CloudFormation deletes the bucket only if `keep` is False. With None, `Cleanup`
        decides whether the bucket is deleted.
        """
        expiring = s3.LifecycleRule(prefix=names.WORK, expiration=ABANDONED)
        if keep is False:
            clean = _OwnBucket(self, "Data", encryption_key=self._key, lifecycle_rules=[expiring])
            self.emptied.append(clean.emptied)
            return clean
        bucket = s3.Bucket(
            self,
            "Data",
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            lifecycle_rules=[s3.LifecycleRule(abort_incomplete_multipart_upload_after=ABANDONED), expiring],
            **private(self._key),
        )
        accept_private(bucket)
        Tags.of(bucket).add(names.TAG_KEEP, "true" if keep else names.KEEP_UNFETCHED)
        assert bucket.policy
        bucket.policy.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        cleanup = Cleanup.of(self)
        unfetched = (names.RUNS, names.FETCHED) if keep is None else None
        self.emptied.append(cleanup.empty(bucket, "DataBucket", keep=bool(keep), unfetched=unfetched))
        bucket.policy.node.add_dependency(self.emptied[-1])
        if keep is None:
            cleanup.allow_empty(bucket, fetched=names.FETCHED)
        return bucket


class _OwnBucket(CleanBucket):
    _tag = None

    @property
    def _emptier(self) -> str:
        return f"{self.node.id}Bucket"
