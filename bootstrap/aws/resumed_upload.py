"""Uploads large files in parts, and goes on where an earlier command ended.

boto3's transfer aborts an upload that fails, and begins again. Here the parts stay: the next upload to the same key
finds them, and sends those again whose ETag is not that of the file's part now. So a file that has changed, or another
file of the name, cannot leave a mixture. Where S3 encrypts with a key of KMS ETags say nothing of the content, and all
parts are sent again. The bucket's own rule removes parts that nobody completes.
"""

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import ShoalError
from corpus.reading.s3 import S3Path

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_AT_ONCE = 4
_MOST_PARTS = 10_000
"""Of an upload, by S3's limits."""


def upload_in_parts(
    s3: "S3Client",
    path: Path,
    place: S3Path,
    *,
    metadata: Mapping[str, str],
    chunk_bytes: int,
    count: Callable[[int], None],
) -> None:
    """Copy a file to an object, which appears complete; `count` is called with the bytes of each part that is there.

    Raises ShoalError for a file that changes meanwhile; an error or an interrupt leaves the parts for the next upload.
    """
    before = path.stat()
    chunk = max(chunk_bytes, -(-before.st_size // _MOST_PARTS))
    known: dict[str, Any] = {"Bucket": place.bucket, "Key": place.key}
    upload = _unfinished(s3, place, before.st_mtime)
    upload = upload or s3.create_multipart_upload(**known, Metadata=dict(metadata))["UploadId"]
    there = {
        part["PartNumber"]: part["ETag"]
        for page in s3.get_paginator("list_parts").paginate(**known, UploadId=upload)
        for part in page.get("Parts", ())
    }

    def send(number: int) -> dict[str, Any]:
        with path.open("rb") as file:
            file.seek((number - 1) * chunk)
            content = file.read(chunk)
        etag = f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
        if there.get(number) != etag:
            etag = s3.upload_part(**known, UploadId=upload, PartNumber=number, Body=content)["ETag"]
        count(len(content))
        return {"PartNumber": number, "ETag": etag}

    numbers = range(1, -(-before.st_size // chunk) + 1)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sending = [pool.submit(send, number) for number in numbers]
        try:
            parts: Any = [each.result() for each in sending]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    after = path.stat()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise ShoalError(f"{path} has changed while it was uploaded; type the command again when it is complete")
    s3.complete_multipart_upload(**known, UploadId=upload, MultipartUpload={"Parts": parts})


def _unfinished(s3: "S3Client", place: S3Path, changed: float) -> str | None:
    """The id of an unfinished upload to a key that was begun after the file has changed; others are aborted."""
    found = None
    for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=place.bucket, Prefix=place.key):
        for each in page.get("Uploads", ()):
            if each["Key"] != place.key:
                continue
            if found is None and each["Initiated"].timestamp() >= changed:
                found = each["UploadId"]
            else:
                s3.abort_multipart_upload(Bucket=place.bucket, Key=place.key, UploadId=each["UploadId"])
    return found
