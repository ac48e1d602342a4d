"""File systems, buckets, tables, secrets and keys.

A bucket that its topology keeps is listed here, too; `sweep` does not delete it.
"""

from collections.abc import Iterator, Mapping

from botocore.exceptions import ClientError

from bootstrap.aws.account import Account, ResourceRecord
from bootstrap.aws.ownership import fetched_tags, listed_tags, never_owned
from bootstrap.removal import deletion
from bootstrap.removal.deletion import delete_call
from bootstrap.removal.kinds.kind import ListCall, ResourceKind, always, list_call, suppress_error


def _of_file_systems(operation: str, key: str) -> ListCall:
    """Parts of file systems, listed for each file system, with its tags."""

    def listing(account: Account) -> Iterator[ResourceRecord]:
        for system in account.items("efs", "describe_file_systems", "FileSystems"):
            with suppress_error("FileSystemNotFound"):
                for record in account.items("efs", operation, key, FileSystemId=system["FileSystemId"]):
                    yield {**record, "Tags": system.get("Tags")}

    return listing


def _keys(account: Account) -> Iterator[ResourceRecord]:
    """Customer managed keys. AWS managed keys are left out: AWS creates them, they stay, and they cost nothing.

    A key's policy can forbid reading its state; such a key exists, and nothing else is known of it.
    """
    for key in account.items("kms", "list_keys", "Keys"):
        with suppress_error("NotFoundException"):
            try:
                found = account.client("kms").describe_key(KeyId=key["KeyId"])["KeyMetadata"]
            except ClientError as error:
                if error.response["Error"]["Code"] != "AccessDeniedException":
                    raise
                found = {"KeyManager": "CUSTOMER"}
            if found["KeyManager"] == "CUSTOMER":
                yield {"KeyId": key["KeyId"], "State": found.get("KeyState", "")}


STORES: Mapping[str, ResourceKind] = {
    "efs mount target": ResourceKind(
        listing=_of_file_systems("describe_mount_targets", "MountTargets"),
        identifier="MountTargetId",
        owned=listed_tags,
        delete=delete_call("efs", "delete_mount_target", MountTargetId="id"),
        cloudformation="AWS::EFS::MountTarget",
    ),
    "efs access point": ResourceKind(
        listing=_of_file_systems("describe_access_points", "AccessPoints"),
        identifier="AccessPointId",
        owned=listed_tags,
        delete=delete_call("efs", "delete_access_point", AccessPointId="id"),
        arn="elasticfilesystem:access-point/(.+)",
        cloudformation="AWS::EFS::AccessPoint",
    ),
    "efs file system": ResourceKind(
        listing=list_call("efs", "describe_file_systems", "FileSystems"),
        identifier="FileSystemId",
        owned=listed_tags,
        delete=delete_call("efs", "delete_file_system", FileSystemId="id"),
        billed=always,
        arn="elasticfilesystem:file-system/(.+)",
        cloudformation="AWS::EFS::FileSystem",
    ),
    "s3 bucket": ResourceKind(
        # Without the filter S3 lists all regions' buckets, without their regions.
        listing=lambda account: account.items("s3", "list_buckets", "Buckets", BucketRegion=account.region),
        identifier="Name",
        owned=fetched_tags("s3", "get_bucket_tagging", "TagSet", Bucket="Name"),
        delete=deletion.bucket,
        billed=always,
        arn="s3:(.+)",
        cloudformation="AWS::S3::Bucket",
    ),
    "dynamodb table": ResourceKind(
        listing=lambda account: ({"Name": name} for name in account.items("dynamodb", "list_tables", "TableNames")),
        identifier="Name",
        owned=never_owned,
        delete=delete_call("dynamodb", "delete_table", TableName="id"),
        billed=always,
        arn="dynamodb:table/(.+)",
        cloudformation="AWS::DynamoDB::Table",
    ),
    "secret": ResourceKind(
        listing=list_call("secretsmanager", "list_secrets", "SecretList"),
        identifier="Name",
        owned=listed_tags,
        # At once: otherwise it would cost money for some more days.
        delete=delete_call("secretsmanager", "delete_secret", SecretId="id", ForceDeleteWithoutRecovery=True),
        billed=always,
        arn="secretsmanager:secret:(.+)-[A-Za-z0-9]{6}",
        cloudformation="AWS::SecretsManager::Secret",
    ),
    "kms key": ResourceKind(
        listing=_keys,
        identifier="KeyId",
        owned=never_owned,
        delete=None,
        billed=always,
        arn="kms:key/(.+)",
        cloudformation="AWS::KMS::Key",
    ),
}
