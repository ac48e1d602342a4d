"""Uploads large files in parts, and goes on where an earlier command ended.

boto3's transfer aborts an upload that fails, and begins again. Here the parts stay: the next upload to the same key
finds them, and sends those again whose ETag is not that of the file's part now. So a file that has changed, or another
file of the name, cannot leave a mixture. Where S3 encrypts with a key of KMS ETags say nothing of the content, and all
parts are sent again. The rule of a deployment's own buckets removes parts that nobody completes; a bucket of the user's
needs one of its own.
"""

import hashlib
import io
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from common.errors import ShoalError
from corpus.reading.s3 import S3Path

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

PART_BYTES = 16 << 20
_AT_ONCE = 4
_MOST_PARTS = 10_000
"""Of an upload, by S3's limits."""
_LIVE_SECONDS = 24 * 3600.0
"""How old an upload must be to be taken for abandoned."""


class _StoppedError(Exception):
    """The upload was interrupted while a part was sent."""


class _Part(io.BytesIO):
    """A part's bytes, which nobody reads any more after an interrupt."""

    def __init__(self, content: bytes, stopped: Event) -> None:
        super().__init__(content)
        self._stopped = stopped

    def read(self, size: int | None = -1) -> bytes:
        if self._stopped.is_set():
            raise _StoppedError
        return super().read(size)


def upload_in_parts(
    s3: "S3Client",
    path: Path,
    place: S3Path,
    *,
    metadata: Mapping[str, str],
    count: Callable[[int], None],
    part_bytes: int = PART_BYTES,
) -> None:
    """Copy a file to an object, which appears complete; `count` is called with the bytes of each part that is there.

    Raises ShoalError for a file that changes meanwhile; an error or an interrupt leaves the parts for the next upload.
    """
    before = path.stat()
    size = max(part_bytes, -(-before.st_size // _MOST_PARTS))
    known: dict[str, Any] = {"Bucket": place.bucket, "Key": place.key}
    upload = _unfinished(s3, place, before.st_mtime)
    upload = upload or s3.create_multipart_upload(**known, Metadata=dict(metadata))["UploadId"]
    there = {
        part["PartNumber"]: part["ETag"]
        for page in s3.get_paginator("list_parts").paginate(**known, UploadId=upload)
        for part in page.get("Parts", ())
    }
    stopped = Event()

    def send(number: int) -> dict[str, Any]:
        with path.open("rb") as file:
            file.seek((number - 1) * size)
            content = file.read(size)
        etag = f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
        if there.get(number) != etag:
            body = _Part(content, stopped)
            etag = s3.upload_part(**known, UploadId=upload, PartNumber=number, Body=body)["ETag"]
        count(len(content))
        return {"PartNumber": number, "ETag": etag}

    numbers = range(1, -(-before.st_size // size) + 1)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sending = [pool.submit(send, number) for number in numbers]
        try:
            parts: Any = [each.result() for each in sending]
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
    after = path.stat()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise ShoalError(f"{path} has changed while it was uploaded; type the command again when it is complete")
    s3.complete_multipart_upload(**known, UploadId=upload, MultipartUpload={"Parts": parts})


def _unfinished(s3: "S3Client", place: S3Path, changed: float) -> str | None:
    """The id of an unfinished upload to a key that was begun after the file has changed; those that nobody can be at
    any more are aborted."""
    found = None
    for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=place.bucket, Prefix=place.key):
        for each in page.get("Uploads", ()):
            begun = each["Initiated"].timestamp()
            if each["Key"] == place.key and begun >= changed:
                found = each["UploadId"]
            elif each["Key"] == place.key and begun < time.time() - _LIVE_SECONDS:
                s3.abort_multipart_upload(Bucket=place.bucket, Key=place.key, UploadId=each["UploadId"])
    return found
