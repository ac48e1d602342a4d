"""S3 operations of the launchers: uploads and downloads with a progress bar, and listing and emptying folders.

Do not use a key as a local path, because anyone who can write to the bucket chooses its keys. Use `paths` instead.
"""

import re
from collections import deque
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from shoal_guard.handlers import cleanup

from common.display import size
from common.errors import ShoalError
from common.progress import reporter
from corpus.reading import s3
from corpus.reading.compression import BLOCK_BYTES, DamagedArchiveError, decompress
from corpus.reading.s3 import S3Path
from corpus.reading.sources import Source

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_CHANGED = "changed"
"""Key of an object's metadata with the modification time of the uploaded file, in nanoseconds since 1970."""

_CHUNK_BYTES = 64 << 20
_LAST_BLOCKS = (1 << 20) // BLOCK_BYTES
MOST_LOG_BYTES = 250_000_000
"""Maximum size of a log, packed and unpacked. A node can write an object that unpacks to terabytes."""


def sizes(client: "S3Client", place: S3Path) -> dict[str, int]:
    """Return the size in bytes, by key, of all objects below `place`."""
    return {each["Key"]: each["Size"] for each in s3.list_objects(client, place)}


def upload(client: "S3Client", files: list[Path], folder: S3Path) -> list[str]:
    """Upload files to a folder, and return the S3 addresses of all files. Skip unchanged files that were uploaded
    before.

    A file is unchanged if its size and modification time equal the values that were recorded with its object. The name
    of an object is `safe_name` of the file's name. Raises ShoalError if two files would have the same object name, or
    if a file changes during the upload.
    """
    names = [safe_name(path.name) for path in files]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ShoalError(f"two input files have the name {twice} in the bucket; rename one of them")
    reporter().stage("upload", sum(path.stat().st_size for path in files))
    done = 0
    for path, name in zip(files, names, strict=True):
        key = folder.key + name
        size = path.stat().st_size
        changed = str(path.stat().st_mtime_ns)
        place = S3Path(folder.bucket, key)
        head = s3.head_or_none(client, place)
        if head is None or (head["ContentLength"], head["Metadata"].get(_CHANGED)) != (size, changed):
            s3.upload(client, path, place, metadata={_CHANGED: changed}, chunk_bytes=_CHUNK_BYTES, count=reporter().add)
            if (path.stat().st_size, str(path.stat().st_mtime_ns)) != (size, changed):
                client.delete_object(Bucket=place.bucket, Key=place.key)
                raise ShoalError(f"{path} changed while Shoal uploaded it; run the command again when it is complete")
        done += size
        reporter().at(done)
    return [str(S3Path(folder.bucket, folder.key + name)) for name in names]


def safe_name(name: str) -> str:
    """Return a file's name without the characters that Hadoop interprets as patterns or as the prefix of a hidden
    file."""
    safe = re.sub(r"[^A-Za-z0-9.=+@_-]|^[._]", "-", name)
    if safe == name:
        return name
    # The hash distinguishes names that differ only in such characters. The suffix is kept, because it names the
    # compression.
    return f"{blake2b(name.encode('utf-8', 'surrogateescape'), digest_size=4).hexdigest()}-{safe}"


def upload_reviews(client: "S3Client", sources: tuple[Source, ...], folder: S3Path) -> tuple[Source, ...]:
    """Upload the local sources to a folder in S3, and return all sources with S3 addresses."""
    local = [source for source in sources if not s3.is_s3(source.address)]
    if not local:
        return sources
    paths = [Path(source.address) for source in local]
    place = dict(zip(local, upload(client, paths, folder), strict=True))
    return tuple(replace(source, address=place.get(source, source.address)) for source in sources)


def is_marker(key: str, size: int) -> bool:
    """Return whether an object contains no data: it is an empty object that represents a folder, as AWS's console
    creates it, or an incomplete upload."""
    return (key.endswith("/") and not size) or cleanup.is_partial(key)


def log_tail(client: "S3Client", place: S3Path) -> str | None:
    """Return the last MiB of a log that EMR compressed with gzip, or None if it does not exist. If the log is damaged
    or too large, return a sentence about the damage or the size."""
    head = s3.head_or_none(client, place)
    if head is None:
        return None
    last, unread = deque[bytes](maxlen=_LAST_BLOCKS), MOST_LOG_BYTES
    try:
        if head["ContentLength"] <= unread:
            with closing(s3.get(client, place)) as body:
                for block in decompress(cast(BinaryIO, body), ".gz"):
                    last.append(block)
                    if (unread := unread - len(block)) < 0:
                        break
            if unread >= 0:
                return b"".join(last).decode("utf-8", "replace").strip()
    except DamagedArchiveError:
        return "its log is damaged"
    return f"its log has more than {size(MOST_LOG_BYTES)}: {place}"


def remove(client: "S3Client", place: S3Path, *, keep: Collection[S3Path] = ()) -> None:
    """Delete all objects below `place`, except the objects in `keep`. Raises ShoalError, which names an object, if S3
    did not delete that object."""
    kept = {each.key for each in keep}
    found: list[ObjectIdentifierTypeDef] = [{"Key": key} for key in sizes(client, place) if key not in kept]
    for batch in cleanup.batches(found):
        for refused in cleanup.delete(client, place.bucket, batch):
            raise ShoalError(f"S3 did not delete s3://{place.bucket}/{refused['Key']}: {refused['Message']}")
