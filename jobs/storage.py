"""Files by address, a path or s3://...: what the jobs read and write beside their records.

The easy mistake is to write to the final name: a task can die at any moment, and another attempt of it may
be running. `writable` gives a path of one's own; the final name appears whole, by rename or by upload.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

from corpus.errors import DataError
from jobs.compression import BLOCK_BYTES, compression, unpack

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from mypy_boto3_s3.client import S3Client

PART_PREFIX = "part-"

_ATTEMPTS = 10


def is_s3(address: str) -> bool:
    """Whether an address is one of S3."""
    return address.startswith("s3://")


def join(folder: str, name: str) -> str:
    """The address of `name` in `folder`."""
    return f"{folder.rstrip('/')}/{name}"


def part_url(folder: str, part: str) -> str:
    """The address of a part file."""
    return join(folder, f"{PART_PREFIX}{part}.h5")


def side_url(folder: str, part: str) -> str:
    """The address of a side file: what `jobs.deduplicate` leaves of a part for `jobs.encode`."""
    return join(folder, f"{PART_PREFIX}{part}.bin")


def part_name(number: int) -> str:
    """The name of a part; names are in the order of the parts."""
    return f"{number:04x}"


def place(address: str) -> tuple[str, str]:
    """The bucket and the key of an address of S3."""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    return bucket, key


def s3_client() -> "S3Client":
    """The client of S3 for this process; throttled calls and lost connections are tried ten times."""
    return _client(os.getpid(), os.environ.get("AWS_ENDPOINT_URL"))


@cache
def _client(process: int, endpoint: str | None) -> "S3Client":  # noqa: ARG001
    """A client each process, as connections do not survive a fork, and each endpoint."""
    # Imported here: a task that reads local files alone starts half a second sooner, and 40 MB smaller.
    import boto3
    from botocore.config import Config

    retries = Config(retries={"mode": "standard", "max_attempts": _ATTEMPTS}, connect_timeout=10, read_timeout=60)
    return boto3.client("s3", config=retries)


@contextmanager
def s3_errors(address: str, verb: str) -> Iterator[None]:
    """Say in a sentence what S3 refused or could not do, after all attempts."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _refused(error, address, verb) from error
    except (BotoCoreError, Boto3Error) as error:
        # A transfer wraps what S3 answered in words about its temporary file.
        if isinstance(error.__context__, ClientError):
            raise _refused(error.__context__, address, verb) from error
        raise DataError(f"cannot {verb} {address}: {error}; check the network, and run it again") from error


def _refused(error: "ClientError", address: str, verb: str) -> DataError:
    code = error.response["Error"].get("Code", "")
    if code == "NoSuchBucket":
        return DataError(f"cannot {verb} {address}: there is no bucket {place(address)[0]}; check the address")
    if code in ("404", "NoSuchKey"):
        return DataError(f"there is nothing at {address}; check the address")
    if code in ("412", "PreconditionFailed"):
        return DataError(f"{address} was replaced while it was read; run it again")
    return DataError(f"cannot {verb} {address}: {error}; check the address and your rights to it")


def check_writable(folder: str) -> None:
    """Refuse a folder on S3 whose bucket is not there, or not open to us, before any work is done for it.

    Raises DataError then; says nothing of a folder that is a path.
    """
    if not is_s3(folder):
        return
    from botocore.exceptions import ClientError, ParamValidationError

    bucket, _ = place(folder)
    try:
        s3_client().head_bucket(Bucket=bucket)
    except ParamValidationError as error:
        raise DataError(f"cannot write to {folder}: '{bucket}' is no name of a bucket; check the address") from error
    except ClientError as error:
        if error.response["Error"].get("Code") in ("404", "NoSuchBucket"):
            raise DataError(
                f"cannot write to {folder}: there is no bucket {bucket}; make it first, or check the address"
            ) from error
        raise DataError(
            f"cannot write to {folder}: {error}; take a bucket in which you may list, read and write objects"
        ) from error


def exists(address: str) -> bool:
    """Whether there is a file at an address."""
    if not is_s3(address):
        return Path(address).is_file()
    bucket, key = place(address)
    with s3_errors(address, "look for"):
        found = s3_client().list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1).get("Contents", [])
    return any(each["Key"] == key for each in found)


def size_of(address: str) -> int:
    """The bytes of a file. Raises DataError when there is none."""
    if is_s3(address):
        bucket, key = place(address)
        with s3_errors(address, "read"):
            return s3_client().head_object(Bucket=bucket, Key=key)["ContentLength"]
    try:
        return Path(address).stat().st_size
    except OSError as error:
        raise DataError(f"cannot read {address}: {error.strerror}; check the path and its permissions") from error


def list_files(folder: str, prefix: str = PART_PREFIX) -> list[str]:
    """A folder's files whose names start with `prefix`, in order of name; none if there is no such folder."""
    if not is_s3(folder):
        return sorted(str(path) for path in Path(folder).glob(f"{prefix}*"))
    bucket, key = place(folder)
    with s3_errors(folder, "list"):
        pages = s3_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=join(key, prefix))
        return sorted(f"s3://{bucket}/{found['Key']}" for page in pages for found in page.get("Contents", ()))


def open_range(address: str, start: int = 0, ahead: int | None = None) -> BinaryIO:
    """A file from byte `start` on, to be closed by the caller; its `read(n)` gives n bytes but at the end.

    Of S3 `ahead` is how many bytes one request asks for at least, None being all there are: where a range of a
    file is wanted, what lies behind it need not travel. A connection that is cut is taken up where it was.
    Raises DataError when there is no such file, or it cannot be read.
    """
    if is_s3(address):
        from jobs.s3_object import open_object

        return open_object(address, start, ahead)
    try:
        file = Path(address).open("rb")  # noqa: SIM115
        file.seek(start)
    except OSError as error:
        raise DataError(f"cannot read {address}: {error.strerror}; check the path and its permissions") from error
    return file


def open_blocks(address: str) -> Iterator[bytes]:
    """The content of a file, unpacked as its name says, in blocks of at most 256 KiB.

    Raises DamagedArchiveError after all that could be unpacked, and DataError when it cannot be read.
    """
    with open_range(address) as file:
        suffix = compression(address)
        if suffix:
            yield from unpack(file, suffix)
        else:
            while block := file.read(BLOCK_BYTES):
                yield block


def open_lines(address: str) -> Iterator[bytes]:
    """The lines of a file, with their newlines, as they are read."""
    with open_range(address) as file:
        yield from file


@contextmanager
def readable(address: str) -> Iterator[Path]:
    """A local file with what is at an address; a copy, deleted afterwards, where that is S3."""
    if not is_s3(address):
        yield Path(address)
        return
    from boto3.s3.transfer import TransferConfig

    bucket, key = place(address)
    # The client's own attempts end where an answer begins; those that break off later are counted here.
    attempts = TransferConfig(num_download_attempts=_ATTEMPTS)
    with TemporaryDirectory(prefix="shoal-") as folder:
        path = Path(folder) / Path(key).name
        with s3_errors(address, "read"):
            s3_client().download_file(bucket, key, str(path), Config=attempts)
        yield path


@contextmanager
def writable(address: str) -> Iterator[Path]:
    """A local path to write a file to; on leaving without an error the file is at the address, whole.

    After an error nothing is left: neither the file nor a part of it.
    """
    if is_s3(address):
        bucket, key = place(address)
        with TemporaryDirectory(prefix="shoal-") as folder:
            path = Path(folder) / Path(key).name
            yield path
            with s3_errors(address, "write"):
                s3_client().upload_file(str(path), bucket, key)
        return
    final = Path(address)
    final.parent.mkdir(exist_ok=True)  # no more than this: the folder above may have been removed for good
    # Twin attempts of one task may write the same file at once, so each has a partial file of its own.
    partial = final.with_name(f".{final.name}.{uuid4().hex}.partial")
    try:
        yield partial
        partial.replace(final)
    finally:
        partial.unlink(missing_ok=True)


def write_text(address: str, text: str) -> None:
    """Put a small text file under an address, whole."""
    with writable(address) as path:
        path.write_text(text, "utf-8")
