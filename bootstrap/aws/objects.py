"""Objects of S3 as the launchers need them: files up and down with a bar, folders listed and emptied.

The easy mistake is to take a key for a path: others than the user may have written it (`paths`).
"""

import gzip
import os
import re
import zlib
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from bootstrap.aws.paths import path_below
from bootstrap.errors import ShoalError
from bootstrap.progress import Bars
from corpus.reading import s3
from corpus.reading.s3 import Place as Place
from corpus.reading.s3 import list_objects as list_objects
from corpus.reading.s3 import put_new as put_new
from corpus.reading.s3 import read_from as read_from
from corpus.reading.s3 import read_text as read_text
from infra.handlers import cleanup

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_CHANGED = "changed"
"""In an object's metadata: when its file was changed, in nanoseconds since 1970."""

_AT_ONCE = 16
_MOST_AT_ONCE = 1000
"""So many objects one request deletes at most."""
_CHUNK_BYTES = 64 << 20


def parse(address: str) -> Place:
    """The bucket and the key of an s3:// address. Raises ShoalError for any other text."""
    place = s3.place_of(address)
    if not s3.is_s3(address) or not place.bucket:
        raise ShoalError(f"'{address}' is no address of S3; it should look like s3://bucket/name")
    return place


def sizes(client: "S3Client", place: Place) -> dict[str, int]:
    """The keys that start with a place's, and the bytes of each."""
    return {found["Key"]: found["Size"] for found in list_objects(client, place)}


def upload(client: "S3Client", files: list[Path], folder: Place, bars: Bars) -> list[str]:
    """Put files into a folder; those that are there already, unchanged since, are left.

    Returns their addresses, in which names are `safe_name`s. A file counts as unchanged when its size and time of
    change are those that its object was made with. Raises ShoalError when two files have one name.
    """
    names = [safe_name(path.name) for path in files]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ShoalError(f"two input files are named {twice}; in the bucket one would replace the other, so rename one")
    bars.stage("upload", sum(path.stat().st_size for path in files))
    done = 0
    for path, name in zip(files, names, strict=True):
        key = folder.key + name
        size = path.stat().st_size
        changed = str(path.stat().st_mtime_ns)
        if _made_with(client, Place(folder.bucket, key)) != (size, changed):
            sent = [done]

            def count(more: int, sent: list[int] = sent) -> None:
                sent[0] += more
                bars.at(sent[0])

            there = Place(folder.bucket, key)
            s3.upload(client, path, there, metadata={_CHANGED: changed}, chunk_bytes=_CHUNK_BYTES, count=count)
        done += size
        bars.at(done)
    return [str(Place(folder.bucket, folder.key + name)) for name in names]


def safe_name(name: str) -> str:
    """A file's name as an object's: Hadoop takes some signs for patterns, and leading ones for hidden."""
    safe = re.sub(r"[^A-Za-z0-9.=+@_-]|^[._]", "-", name)
    if safe == name:
        return name
    # Two names that differ in such signs alone must stay two; and the ending says how to unpack.
    return f"{blake2b(name.encode('utf-8', 'surrogateescape'), digest_size=4).hexdigest()}-{safe}"


def _made_with(client: "S3Client", place: Place) -> tuple[int, str] | None:
    found = s3.head_if_there(client, place)
    return None if found is None else (found["ContentLength"], found["Metadata"].get(_CHANGED, ""))


def download(
    client: "S3Client", place: Place, folder: Path, *, check: Callable[[str], str]
) -> tuple[list[Path], list[str]]:
    """Copy what is below a place, whose key ends with `/`, into a folder.

    `check` raises ShoalError for a name below the place that is not to come: a file of the user's may have it. Returns
    the files, and a sentence for each object that can be none there. Raises ShoalError where it cannot write.
    """
    files, refused = [], []
    for key, size in sizes(client, place).items():
        if is_marker(key, size):
            continue
        try:
            path = path_below(folder, check(key.removeprefix(place.key)))
        except ShoalError as error:
            refused.append(str(error))
            continue
        save(client, Place(place.bucket, key), path)
        files.append(path)
    return files, refused


def is_marker(key: str, size: int) -> bool:
    """Whether an object only stands for a folder, as the console makes some."""
    return key.endswith("/") and not size


def save(
    client: "S3Client",
    place: Place,
    path: Path,
    *,
    changed: float | None = None,
    count: Callable[[int], None] = lambda _: None,
) -> None:
    """Copy an object to a path, where it appears whole, with its time of change if that is told.

    `count` is called with the bytes that have come since. Raises ShoalError where it cannot write.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            s3.download(client, place, partial, chunk_bytes=_CHUNK_BYTES, count=count)
            if changed is not None:
                os.utime(partial, (changed, changed))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ShoalError(
            f"cannot write {path}: {error.strerror or error}; free some space, or take another folder"
        ) from error


def put(client: "S3Client", contents: Mapping[str, bytes]) -> None:
    """Write small objects, by their addresses."""

    def one(address: str) -> None:
        s3.put(client, parse(address), contents[address])

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(one, address) for address in contents]:
            done.result()


def exists(client: "S3Client", place: Place) -> bool:
    """Whether there is an object."""
    return s3.head_if_there(client, place) is not None


def state(client: "S3Client", place: Place) -> tuple[str, int] | None:
    """What tells an object from what was there before it, and its bytes; nothing when there is none."""
    found = s3.head_if_there(client, place)
    return None if found is None else (found["ETag"], found["ContentLength"])


def written(client: "S3Client", place: Place) -> datetime | None:
    """When an object was written, or nothing when there is none."""
    found = s3.head_if_there(client, place)
    return None if found is None else found["LastModified"]


def unpacked(packed: bytes) -> str:
    """What a log says that EMR has packed; of one that cannot be read, that it is damaged."""
    try:
        return gzip.decompress(packed).decode("utf-8", "replace").strip()
    except (OSError, EOFError, zlib.error):
        return "its log is damaged"


def remove(client: "S3Client", place: Place, *, but: Collection[Place] = ()) -> None:
    """Delete everything below a place, but for these objects. Raises ShoalError with one that S3 keeps."""
    kept = {each.key for each in but}
    keys = [key for key in sizes(client, place) if key not in kept]
    for start in range(0, len(keys), _MOST_AT_ONCE):
        delete(client, place.bucket, [{"Key": key} for key in keys[start : start + _MOST_AT_ONCE]])


def delete(client: "S3Client", bucket: str, found: "list[ObjectIdentifierTypeDef]") -> None:
    """Delete objects, at most 1000. Raises ShoalError with one that S3 keeps."""
    for batch in cleanup.batches(found):
        for refused in cleanup.delete(client, bucket, batch):
            raise ShoalError(f"s3://{bucket}/{refused['Key']} could not be deleted: {refused['Message']}")
