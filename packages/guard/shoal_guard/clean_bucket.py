"""A private bucket, and one that its stack can always delete."""

from typing import Any, ClassVar

from aws_cdk import CustomResource, Duration, Names, RemovalPolicy, Tags
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from shoal_guard.cleanup import Cleanup
from shoal_guard.grants import accept, allow

ABANDONED = Duration.days(2)
"""After this time S3 deletes what an interrupted command has left unfinished."""


def private(key: kms.IKey | None) -> dict[str, Any]:
    """The options of a bucket that is encrypted by `key` or by S3's own, private, and reached by TLS alone."""
    return {
        "encryption": s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        "encryption_key": key,
        "bucket_key_enabled": True if key else None,
        "enforce_ssl": True,
        "block_public_access": s3.BlockPublicAccess.BLOCK_ALL,
    }


def accept_private(bucket: s3.Bucket) -> None:
    """Acknowledge what the rules find in a bucket whose objects do not outlive the stack."""
    for rule in ("S1", "CKV_AWS_18"):
        accept(bucket, rule, "Access logs arrive hours late, and their bucket must be empty for the stack's deletion.")
    accept(bucket, "CKV_AWS_21", "Objects are written once and never changed, so versions would only add costs.")


class CleanBucket(s3.Bucket):
    """A bucket that its stack can always delete, with all objects, their versions and unfinished uploads.

    The CDK's own `auto_delete_objects` empties a bucket while machines still write to it, and CloudFormation then fails
    on what they wrote last. Here the writers that you name go first, and the function that empties the bucket also
    deletes it, also where the bucket alone is taken out of the stack. To keep it, have an `s3.Bucket` of the same name
    take its place, with a removal policy that retains it: without the tag `shoal:clean` nothing is deleted. It is
    encrypted, private, and reached by TLS alone, if you do not say otherwise. Uploads that were never finished end
    after two days.
    """

    _tag: ClassVar[str | None] = "shoal:clean"
    """Without it the bucket stays: so it does where an `s3.Bucket` of the same name takes its place in the stack."""
    emptied: CustomResource
    """What empties the bucket when it is deleted; what writes must depend on it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, encryption_key: kms.IKey | None = None, **options: Any
    ) -> None:
        """Create the bucket.

        Args:
            scope: In a stack.
            construct_id: The construct's id.
            encryption_key: A key of the account in place of S3's own.
            options: All others of `aws_cdk.aws_s3.Bucket`, but for `removal_policy` and `auto_delete_objects`.

        Raises:
            TypeError: One of these two is given.
        """
        if given := {"removal_policy", "auto_delete_objects"} & options.keys():
            raise TypeError(f"a CleanBucket is deleted with its stack: leave out {', '.join(sorted(given))}")
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
        if self.policy:  # the function deletes the bucket, so that its policy must be gone by then
            self.written_by(self.policy)

    @property
    def _emptier(self) -> str:
        """The name, in the stack's cleanup, of what empties the bucket; changed, it empties that of a running stack."""
        return f"{Names.unique_id(self)}Bucket"

    def written_by(self, *writers: IConstruct) -> None:
        """Have these resources created after the bucket, and deleted before it is emptied."""
        for writer in writers:
            writer.node.add_dependency(self.emptied)
