"""S3 and EFS: their records, and the lists of S3."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Record, Seam, Table

_efs, _s3 = MinistackModule("services.efs"), MinistackModule("services.s3")

access_points: Table = _efs.take("_access_points")
file_systems: Table = _efs.take("_file_systems")
"""Access points and file systems, by their ids."""
mount_targets: Table = _efs.take("_mount_targets")
"""The mount targets of file systems, by their ids."""


def region_of(file_system: str) -> str | None:
    """The region in which a file system has a mount target; None where it has none."""
    every = mount_targets.to_dict().items()  # type: ignore[attr-defined]
    return next((region for (_, region, _), target in every if target["FileSystemId"] == file_system), None)


delete_file_system: Seam[Callable[[str], Any]] = Seam("_delete_file_system", _efs)
"""DeleteFileSystem, by the file system's id."""

bucket_tags: dict[str, dict[str, str]] = _s3.take("_bucket_tags")
"""The tags that GetBucketTagging returns, by the buckets' names."""

delete_bucket: Seam[Callable[[str], Answer]] = Seam("_delete_bucket", _s3)
"""DeleteBucket, by the bucket's name."""

put_object: Callable[[str, str, bytes, Record], Answer] = _s3.take("_put_object")
"""PutObject: the bucket's name, the key, the body, the request's headers."""

list_versions: Seam[Callable[[str, Record], Answer]] = Seam("_list_object_versions", _s3)
"""ListObjectVersions: the bucket's name, the request's query."""

list_uploads: Seam[Callable[[str, Record], Answer]] = Seam("_list_multipart_uploads", _s3)
"""ListMultipartUploads: the bucket's name, the request's query."""
