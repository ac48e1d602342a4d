"""Reads and writes files at paths and s3:// addresses: input files, and files that one job writes for the next.

Do not write to a file under its final name. A task can die at any moment, and another attempt of the same task might be
running. `writable` yields a temporary path, and renames or uploads the file when it is complete.
"""

import io
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from common.display import plural
from common.errors import DataError, explain_os_error
from common.files import open_regular, whole_file
from common.private_folders import temporary_folder
from corpus.reading import s3
from corpus.reading.compression import BLOCK_BYTES, compression, decompress
from corpus.reading.s3 import S3Path, is_s3

if TYPE_CHECKING:
    from botocore.response import StreamingBody

_ATTEMPTS = 8
FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0
_BUFFER_BYTES = 1 << 20
PART_PREFIX = "part-"
"""Prefix of the names of the files that the tasks of a job write, as in Hadoop."""


def join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def check_writable(folder: str) -> None:
    """Raise DataError if the bucket of an S3 folder does not exist or is not accessible.

    Call this function before a command does any work. A local folder is not checked.
    """
    if not is_s3(folder):
        return
    from botocore.exceptions import ClientError, ParamValidationError

    bucket = s3.place_of(folder).bucket
    try:
        s3.client().head_bucket(Bucket=bucket)
    except ParamValidationError as error:
        raise DataError(
            f"cannot write to {folder}: '{bucket}' is not a valid bucket name; check the address"
        ) from error
    except ClientError as error:
        if s3.error_code(error) in ("404", "NoSuchBucket"):
            raise DataError(
                f"cannot write to {folder}: there is no bucket {bucket}; create it, or check the address"
            ) from error
        raise DataError(
            f"cannot write to {folder}: {error}; choose a bucket in which you may list, read and write objects"
        ) from error


def exists(address: str) -> bool:
    if not is_s3(address):
        return Path(address).is_file()
    place = s3.place_of(address)
    with s3.explained_errors(address, "look for"):
        return any(found["Key"] == place.key for found in s3.list_objects(s3.client(), place, 1))


def explained_errors(address: str) -> AbstractContextManager[None]:
    """Return a context that converts the errors of reading a file to DataErrors."""
    return explain_os_error(DataError, f"cannot read {address}", "check the path and its permissions")


def size_of(address: str) -> int:
    """Return the size of a file in bytes. Raises DataError if the file does not exist."""
    if is_s3(address):
        with s3.explained_errors(address, "read"):
            return s3.head(s3.client(), s3.place_of(address))["ContentLength"]
    with explained_errors(address):
        return Path(address).stat().st_size


def identity_of(address: str) -> str:
    """Return a value that changes if a file's content changes; see `sources.InputFile`.

    Raises DataError for a missing file.
    """
    if is_s3(address):
        with s3.explained_errors(address, "read"):
            return s3.head(s3.client(), s3.place_of(address))["ETag"].strip('"')
    with explained_errors(address):
        return str(Path(address).stat().st_mtime_ns)


def list_files(folder: str) -> list[str]:
    """Return the addresses of the files in a folder that a job's tasks wrote (`part-...`), sorted.

    A missing folder is treated as an empty one.
    """
    if not is_s3(folder):
        return sorted(str(path) for path in Path(folder).glob(f"{PART_PREFIX}*"))
    bucket, key = s3.place_of(folder)
    with s3.explained_errors(folder, "list"):
        below = s3.list_objects(s3.client(), S3Path(bucket, join(key, PART_PREFIX)))
        return sorted(str(S3Path(bucket, found["Key"])) for found in below)


def open_range(address: str, start: int = 0, ahead: int | None = None) -> BinaryIO:
    """Open a file at byte `start`. The caller must close it. `read(n)` returns n bytes, except at the end of the file.

    Each request to S3 asks for at least `ahead` bytes, or, by default, for the rest of the object. Set `ahead` to the
    size of a range to avoid the transfer of bytes after the range. After a lost connection, reading continues at the
    same position. Raises DataError if the file does not exist or is unreadable.
    """
    if is_s3(address):
        return cast(BinaryIO, io.BufferedReader(_Object(address, start, ahead), _BUFFER_BYTES))
    with explained_errors(address):
        file = open_regular(address)
        file.seek(start)
    return file


def open_blocks(address: str) -> Iterator[bytes]:
    """Yield the content of a file in blocks of at most 256 KiB. A file with a suffix such as `.gz` is decompressed.

    Raises DamagedArchiveError after it yielded all data before the damage, and DataError if the file is unreadable.
    """
    suffix = compression(address)
    with explained_errors(address), open_range(address) as file:
        if suffix:
            yield from decompress(file, suffix)
        else:
            while block := file.read(BLOCK_BYTES):
                yield block


def open_lines(address: str) -> Iterator[bytes]:
    """Yield the lines of a file, with their newlines, without loading the whole file."""
    with explained_errors(address), open_range(address) as file:
        yield from file


@contextmanager
def readable(address: str, most: int | None = None) -> Iterator[Path]:
    """Yield a local path at which the file can be read.

    An S3 object is copied to a temporary file, which is deleted afterwards. Raises DataError for an object of more than
    `most` bytes.
    """
    if not is_s3(address):
        yield Path(address)
        return
    place = s3.place_of(address)
    with temporary_folder("shoal-read-") as folder:
        path = folder / Path(place.key).name
        with s3.explained_errors(address, "read"):
            s3.download(s3.client(), place, path, most=most)
        yield path


@contextmanager
def writable(address: str) -> Iterator[Path]:
    """Yield a local path to write to. After the `with` block, the complete file is stored at the address.

    If the block raises an error, nothing is stored.
    """
    if is_s3(address):
        place = s3.place_of(address)
        with temporary_folder("shoal-written-") as folder:
            path = folder / Path(place.key).name
            yield path
            with s3.explained_errors(address, "write"):
                s3.upload(s3.client(), path, place)
        return
    final = Path(address)
    final.parent.mkdir(exist_ok=True)  # not its parents, which the user might have removed on purpose
    with whole_file(final) as partial:
        yield partial


def write_text(address: str, text: str) -> None:
    with writable(address) as path:
        path.write_text(text, "utf-8")


def remove_files(folder: str) -> None:
    """Delete the objects below an S3 folder. Raises DataError if S3 does not answer, or refuses to delete an object."""
    place = s3.place_of(folder)
    with s3.explained_errors(folder, "delete"):
        refused = list(s3.delete_below(s3.client(), place))
    if refused:
        first, reason = S3Path(place.bucket, refused[0]["Key"]), refused[0]["Message"]
        raise DataError(
            f"S3 did not delete {plural(len(refused), 'object')} below {folder}, such as {first} ({reason}); delete "
            "the rest yourself"
        )


class _Object(io.RawIOBase):
    """Seekable stream of the bytes of an S3 object.

    Each request asks for at least `ahead` bytes, or, without `ahead`, for all remaining bytes. The S3 client retries a
    request only until the response begins. If the connection is lost later, this class requests the remaining bytes, on
    condition that the object is unchanged.
    """

    def __init__(self, address: str, start: int, ahead: int | None) -> None:
        super().__init__()
        self._address = address
        self._place = s3.place_of(address)
        self._position = start
        self._ahead = ahead
        self._body: StreamingBody | None = None
        with s3.explained_errors(address, "read"):
            head = s3.head(s3.client(), self._place)
        self._size = head["ContentLength"]
        self._etag = head["ETag"]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = offset + (0, self._position, self._size)[whence]
        if position != self._position:
            self._drop()
            self._position = position
        return position

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        cause: Exception | None = None
        # If the current response is already read to its end, the first attempt returns no bytes, and the next attempt
        # sends a new request.
        for attempt in range(_ATTEMPTS):
            if self._position >= self._size:
                return 0
            try:
                body = self._body or self._request(len(buffer))
                if data := body.read(len(buffer)):
                    buffer[: len(data)] = data
                    self._position += len(data)
                    return len(data)
            except _cut() as error:
                cause = error
                time.sleep(min(_LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt))
            self._drop()
        raise DataError(
            f"cannot read {self._address}: the connection was lost ({cause}); check the network and run the command "
            "again"
        ) from cause

    def close(self) -> None:
        self._drop()
        super().close()

    def _request(self, size: int) -> "StreamingBody":
        last = self._size if self._ahead is None else min(self._size, self._position + max(size, self._ahead))
        with s3.explained_errors(self._address, "read"):
            self._body = s3.get(s3.client(), self._place, self._position, last, etag=self._etag)
        return self._body

    def _drop(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None


@cache
def _cut() -> tuple[type[Exception], ...]:
    """Return the classes of exceptions that a lost connection can raise."""
    from botocore.exceptions import HTTPClientError, IncompleteReadError
    from urllib3.exceptions import HTTPError

    return HTTPClientError, IncompleteReadError, HTTPError, ConnectionError, TimeoutError
