"""Reads and writes files at a path or an s3:// address: input files and the files between jobs.

Do not write to the final name: a task can die at any moment, and another attempt of it may be running. `writable` gives
a temporary path. The complete file then gets the final name, by rename or by upload.
"""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from common.errors import DataError, explain_os_error
from common.files import require_regular, whole_file
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
"""Prefix of the output files of a job's tasks, as Hadoop names them."""


def join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def check_writable(folder: str) -> None:
    """Raise DataError if the bucket of an S3 folder does not exist or is not accessible.

    Call it before any work is done. A local folder is not checked.
    """
    if is_s3(folder):
        s3.check_bucket(folder)


def exists(address: str) -> bool:
    if not is_s3(address):
        return Path(address).is_file()
    place = s3.place_of(address)
    with s3.explained_errors(address, "look for"):
        return any(found["Key"] == place.key for found in s3.list_objects(s3.client(), place, 1))


def size_of(address: str) -> int:
    """Return the size of a file in bytes. Raises DataError if there is no file."""
    if is_s3(address):
        with s3.explained_errors(address, "read"):
            return s3.head(s3.client(), s3.place_of(address))["ContentLength"]
    with explain_os_error(DataError, f"cannot read {address}", "check the path and its permissions"):
        return Path(address).stat().st_size


def identity_of(address: str) -> str:
    """Return a value that changes with a file's content; see `sources.InputFile`. Raises DataError without a file."""
    if is_s3(address):
        with s3.explained_errors(address, "read"):
            return s3.head(s3.client(), s3.place_of(address))["ETag"].strip('"')
    with explain_os_error(DataError, f"cannot read {address}", "check the path and its permissions"):
        return str(Path(address).stat().st_mtime_ns)


def list_files(folder: str) -> list[str]:
    """Return the record files (`part-...`) of a folder, sorted by name; empty if there is no such folder."""
    if not is_s3(folder):
        return sorted(str(path) for path in Path(folder).glob(f"{PART_PREFIX}*"))
    bucket, key = s3.place_of(folder)
    with s3.explained_errors(folder, "list"):
        below = s3.list_objects(s3.client(), S3Path(bucket, join(key, PART_PREFIX)))
        return sorted(str(S3Path(bucket, found["Key"])) for found in below)


def open_range(address: str, start: int = 0, ahead: int | None = None) -> BinaryIO:
    """Open a file at byte `start`. The caller closes it. `read(n)` returns n bytes except at the end.

    An S3 request asks for at least `ahead` bytes, or, without `ahead`, for the rest of the object. A small value
    avoids transfer of bytes behind the range. After a lost connection, reading continues where it stopped. Raises
    DataError if the file does not exist or is unreadable.
    """
    if is_s3(address):
        return cast(BinaryIO, io.BufferedReader(_Object(address, start, ahead), _BUFFER_BYTES))
    with explain_os_error(DataError, f"cannot read {address}", "check the path and its permissions"):
        file = require_regular(Path(address)).open("rb")
        file.seek(start)
    return file


def open_blocks(address: str) -> Iterator[bytes]:
    """Yield the content of a file in blocks of at most 256 KiB, decompressed according to the suffix.

    Raises DamagedArchiveError after all data before the damage, and DataError if the file is unreadable.
    """
    suffix = compression(address)
    with open_range(address) as file:
        if suffix:
            yield from decompress(file, suffix)
        else:
            while block := file.read(BLOCK_BYTES):
                yield block


def open_lines(address: str) -> Iterator[bytes]:
    """Yield the lines of a file, with their newlines, as they are read."""
    with open_range(address) as file:
        yield from file


@contextmanager
def readable(address: str) -> Iterator[Path]:
    """Yield a local path to the file. For S3 it is a copy, which is deleted afterwards."""
    if not is_s3(address):
        yield Path(address)
        return
    place = s3.place_of(address)
    with temporary_folder("shoal-read-") as folder:
        path = folder / Path(place.key).name
        with s3.explained_errors(address, "read"):
            s3.download(s3.client(), place, path)
        yield path


@contextmanager
def writable(address: str) -> Iterator[Path]:
    """Yield a local path to write to. After the block, the complete file is at the address.

    After an error neither the file nor a part of it remains.
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
    final.parent.mkdir(exist_ok=True)  # not its parents: the user may have removed them on purpose
    with whole_file(final) as partial:
        yield partial


def write_text(address: str, text: str) -> None:
    with writable(address) as path:
        path.write_text(text, "utf-8")


class _Object(io.RawIOBase):
    """Seekable stream of an S3 object. A request asks for at least `ahead` bytes, or, without `ahead`, for the rest.

    The client's own retries cover only the request, but the connection may be lost hours later, during the body. Then
    this class requests the rest again, on condition that the object is unchanged.
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
        # One attempt may find a response that is fully read. The next attempt must return bytes.
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
    """Return the error types that a lost connection can raise."""
    from botocore.exceptions import HTTPClientError, IncompleteReadError
    from urllib3.exceptions import HTTPError

    return HTTPClientError, IncompleteReadError, HTTPError, ConnectionError, TimeoutError
