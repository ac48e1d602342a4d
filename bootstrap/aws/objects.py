"""S3 for the launchers: uploads and downloads with a bar, and listing and emptying folders.

Do not use a key as a path, because others than the user may have written it; use `paths`.
"""

import re
from collections import deque
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from shoal_guard.handlers import cleanup

from bootstrap.progress import Bars
from common.errors import ShoalError
from corpus.reading import s3
from corpus.reading.compression import BLOCK_BYTES, DamagedArchiveError, decompress
from corpus.reading.s3 import S3Path
from corpus.reading.sources import Source

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_CHANGED = "changed"
"""The key of an object's metadata with its file's time of change, in nanoseconds since 1970."""

RAW_PREFIX = "reviews/"
"""Where reviews of this machine are in the raw bucket."""

_AT_ONCE = 16
_MOST_AT_ONCE = 1000
"""The most objects that one request deletes."""
_CHUNK_BYTES = 64 << 20
_LAST_BLOCKS = (1 << 20) // BLOCK_BYTES


def sizes(client: "S3Client", place: S3Path) -> dict[str, int]:
    """The keys that start with the place's key, and the size of each in bytes."""
    return {found["Key"]: found["Size"] for found in s3.list_objects(client, place)}


def upload(client: "S3Client", files: list[Path], folder: S3Path, bars: Bars) -> list[str]:
    """Upload files to a folder, except unchanged ones that are there already.

    Returns their addresses, with `safe_name`s. A file counts as unchanged when its size and time of change are those
    that its object was uploaded with. Raises ShoalError when two files have the same name, or one changes meanwhile.
    """
    names = [safe_name(path.name) for path in files]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ShoalError(
            f"two input files are named {twice}, and in the bucket one would replace the other; rename one of them"
        )
    bars.stage("upload", sum(path.stat().st_size for path in files))
    done = 0
    for path, name in zip(files, names, strict=True):
        key = folder.key + name
        size = path.stat().st_size
        changed = str(path.stat().st_mtime_ns)
        there = S3Path(folder.bucket, key)
        found = s3.head_or_none(client, there)
        if found is None or (found["ContentLength"], found["Metadata"].get(_CHANGED)) != (size, changed):
            s3.upload(client, path, there, metadata={_CHANGED: changed}, chunk_bytes=_CHUNK_BYTES, count=bars.add)
            if (path.stat().st_size, str(path.stat().st_mtime_ns)) != (size, changed):
                client.delete_object(Bucket=there.bucket, Key=there.key)
                raise ShoalError(
                    f"{path} has changed while it was uploaded; type the command again when it is complete"
                )
        done += size
        bars.at(done)
    return [str(S3Path(folder.bucket, folder.key + name)) for name in names]


def safe_name(name: str) -> str:
    """A file's name for an object, without the characters that Hadoop reads as patterns or as hiding a file."""
    safe = re.sub(r"[^A-Za-z0-9.=+@_-]|^[._]", "-", name)
    if safe == name:
        return name
    # Names that differ only in such characters stay different. The ending stays, because it names the compression.
    return f"{blake2b(name.encode('utf-8', 'surrogateescape'), digest_size=4).hexdigest()}-{safe}"


def upload_reviews(client: "S3Client", sources: tuple[Source, ...], folder: S3Path, bars: Bars) -> tuple[Source, ...]:
    """The sources with their addresses in S3; local files are uploaded to a folder of it."""
    local = [source for source in sources if not s3.is_s3(source.address)]
    if not local:
        return sources
    paths = [Path(source.address) for source in local]
    there = dict(zip(local, upload(client, paths, folder, bars), strict=True))
    return tuple(replace(source, address=there.get(source, source.address)) for source in sources)


def is_marker(key: str, size: int) -> bool:
    """Whether an object only represents a folder, as AWS's console creates them, or was not written whole."""
    return (key.endswith("/") and not size) or cleanup.is_partial(key)


def put(client: "S3Client", contents: Mapping[str, bytes]) -> None:
    """Write small objects, by their addresses."""

    def one(address: str) -> None:
        s3.put(client, s3.place_of(address), contents[address])

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(one, address) for address in contents]:
            done.result()


def unpacked(packed: bytes) -> str:
    """The last megabyte of a log that EMR has compressed; a sentence instead if it is damaged."""
    try:
        last = deque(decompress(BytesIO(packed), ".gz"), _LAST_BLOCKS)
    except DamagedArchiveError:
        return "its log is damaged"
    return b"".join(last).decode("utf-8", "replace").strip()


def remove(client: "S3Client", place: S3Path, *, but: Collection[S3Path] = ()) -> None:
    """Delete everything below a place, except these objects. Raises ShoalError naming one that S3 did not delete."""
    kept = {each.key for each in but}
    keys = [key for key in sizes(client, place) if key not in kept]
    for start in range(0, len(keys), _MOST_AT_ONCE):
        delete(client, place.bucket, [{"Key": key} for key in keys[start : start + _MOST_AT_ONCE]])


def delete(client: "S3Client", bucket: str, found: "list[ObjectIdentifierTypeDef]") -> None:
    """Delete objects. Raises ShoalError naming one that S3 did not delete."""
    for batch in cleanup.batches(found):
        for refused in cleanup.delete(client, bucket, batch):
            raise ShoalError(f"s3://{bucket}/{refused['Key']} could not be deleted: {refused['Message']}")
