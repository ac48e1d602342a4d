"""`CleanBucket`, a private bucket that its stack can always delete, even while machines still write to it."""

from typing import Any, ClassVar

from aws_cdk import CustomResource, Duration, Names, RemovalPolicy, Tags
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from shoal_guard.cleanup import Cleanup
from shoal_guard.grants import accept, allow

ABANDONED = Duration.days(2)
"""Age at which S3 deletes an unfinished multipart upload."""


def private(key: kms.IKey | None) -> dict[str, Any]:
    """Return the options of a private, encrypted bucket that requires TLS. `key` replaces S3's own key."""
    return {
        "encryption": s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        "encryption_key": key,
        "bucket_key_enabled": True if key else None,
        "enforce_ssl": True,
        "block_public_access": s3.BlockPublicAccess.BLOCK_ALL,
    }


def accept_private(bucket: s3.Bucket) -> None:
    """Acknowledge the findings of template rules that do not matter for a bucket that is deleted with its stack."""
    for rule in ("S1", "CKV_AWS_18"):
        accept(bucket, rule, "Access logs arrive hours late, and their bucket must be empty for the stack's deletion.")
    accept(bucket, "CKV_AWS_21", "Objects are written once and never changed, so versions would only add costs.")


class CleanBucket(s3.Bucket):
    """A bucket that its stack can always delete, with all objects, versions and unfinished uploads.

    The CDK's own `auto_delete_objects` may empty a bucket while machines still write to it. CloudFormation then fails
    to delete the bucket. A `CleanBucket` is emptied only after the resources that you pass to `written_by` are deleted.
    The Lambda function that empties the bucket also deletes it. It does so, too, if an update removes only the bucket
    from the stack.

    By default the bucket is encrypted and private, and it requires TLS. S3 deletes unfinished uploads after two days.

    To keep the bucket, replace it with an `s3.Bucket` of the same name and the removal policy RETAIN. The replacement
    does not have the tag `shoal:clean`, so the function does not delete it.
    """

    _tag: ClassVar[str | None] = "shoal:clean"
    """Key of the tag that permits the deletion. A replacement `s3.Bucket` does not have the tag, so it is kept."""
    emptied: CustomResource
    """Custom resource that empties the bucket on deletion. Everything that writes to the bucket must depend on it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey | None = None, **options: Any
    ) -> None:
        """Create the bucket.

        Args:
            scope: A construct in a stack.
            construct_id: The construct's id.
            encryption_key: A customer managed key (default: S3's own key).
            options: Options of `aws_cdk.aws_s3.Bucket`, except `removal_policy`. Leave out `auto_delete_objects`.
        """
        rules = [s3.LifecycleRule(abort_incomplete_multipart_upload_after=ABANDONED)]
        rules += options.pop("lifecycle_rules", None) or []
        super().__init__(
            scope,
            construct_id,
            removal_policy=RemovalPolicy.DESTROY,
            lifecycle_rules=rules,
            **{**private(encryption_key), **options},
        )
        accept_private(self)
        cleanup = Cleanup.of(self)
        self.emptied = cleanup.empty(self, self._emptier, tag=self._tag)
        cleanup.allow_empty(self)
        if self._tag:
            Tags.of(self).add(self._tag, "true")
            allow(cleanup.role, ["s3:GetBucketTagging"], [self.bucket_arn])
        if self.policy:  # CloudFormation cannot delete the policy after the function has deleted the bucket
            self.written_by(self.policy)

    @property
    def _emptier(self) -> str:
        """Construct id of `emptied`. Do not change it, because CloudFormation would then replace the custom resource of
        a deployed stack, and deleting the old one empties the bucket."""
        return f"{Names.unique_id(self)}Bucket"

    def written_by(self, *writers: IConstruct) -> None:
        """Declare that these resources write to the bucket, so that they are deleted before the bucket is emptied."""
        for writer in writers:
            writer.node.add_dependency(self.emptied)
