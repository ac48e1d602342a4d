"""S3 and EFS: records, and the list operations of S3."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, PatchPoint, Record, Table

_efs, _s3 = MinistackModule("services.efs"), MinistackModule("services.s3")

access_points: Table = _efs.take("_access_points")
file_systems: Table = _efs.take("_file_systems")
"""File systems by id."""
mount_targets: Table = _efs.take("_mount_targets")
"""Mount targets by id."""


def region_of(file_system: str) -> str | None:
    """Return the region in which a file system has a mount target, or None without a mount target."""
    every = mount_targets.to_dict().items()  # type: ignore[attr-defined]
    return next((region for (_, region, _), target in every if target["FileSystemId"] == file_system), None)


delete_file_system: PatchPoint[Callable[[str], Any]] = PatchPoint("_delete_file_system", _efs)
"""DeleteFileSystem. Argument: id of the file system."""

bucket_tags: dict[str, dict[str, str]] = _s3.take("_bucket_tags")
"""Tags that GetBucketTagging returns, by bucket name."""

delete_bucket: PatchPoint[Callable[[str], Answer]] = PatchPoint("_delete_bucket", _s3)
"""DeleteBucket. Argument: name of the bucket."""

dispatch: PatchPoint[Callable[[str, str, str, Record, bytes, Record], Answer]] = PatchPoint("_dispatch", _s3)
"""Any request to S3. Arguments: method, bucket, key, headers, body, query."""

error: Callable[..., Answer] = _s3.take("_object_error")
"""Returns an error document. Arguments: code, message, status, further elements by name."""

delete_objects: PatchPoint[Callable[..., Answer]] = PatchPoint("_delete_objects", _s3)
"""DeleteObjects. Arguments: bucket, body, headers of the request."""

put_object: Callable[[str, str, bytes, Record], Answer] = _s3.take("_put_object")
"""PutObject. Arguments: bucket, key, body, headers of the request."""

list_versions: PatchPoint[Callable[[str, Record], Answer]] = PatchPoint("_list_object_versions", _s3)
"""ListObjectVersions. Arguments: bucket, query of the request."""

list_uploads: PatchPoint[Callable[[str, Record], Answer]] = PatchPoint("_list_multipart_uploads", _s3)
"""ListMultipartUploads. Arguments: bucket, query of the request."""
