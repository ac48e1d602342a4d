"""Files by address, a path or s3://...: what the jobs read and write beside their records.

The easy mistake is to write to the final name: a task can die at any moment, and another attempt of it may
be running. `writable` gives a local path; the final name appears whole, by rename or by upload.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import boto3
from smart_open import open as open_address

PART_PREFIX = "part-"


def is_s3(address: str) -> bool:
    """Whether an address is one of S3."""
    return address.startswith("s3://")


def join(folder: str, name: str) -> str:
    """The address of `name` in `folder`."""
    return f"{folder.rstrip('/')}/{name}"


def part_url(folder: str, part: str) -> str:
    """The address of a part file."""
    return join(folder, f"{PART_PREFIX}{part}.h5")


def list_files(folder: str, prefix: str = PART_PREFIX) -> list[str]:
    """A folder's files whose names start with `prefix`, in order of name; none if there is no such folder."""
    if not is_s3(folder):
        return sorted(str(path) for path in Path(folder).glob(f"{prefix}*"))
    bucket, key = _place(folder)
    pages = boto3.client("s3").get_paginator("list_objects_v2")
    return sorted(
        f"s3://{bucket}/{found['Key']}"
        for page in pages.paginate(Bucket=bucket, Prefix=join(key, prefix))
        for found in page.get("Contents", ())
    )


def open_lines(address: str) -> Iterator[bytes]:
    """The lines of a file, with their newlines, as they are read."""
    with open_address(address, "rb") as file:
        yield from file


@contextmanager
def readable(address: str) -> Iterator[Path]:
    """A local file with what is at an address; a copy, deleted afterwards, where that is S3."""
    if not is_s3(address):
        yield Path(address)
        return
    bucket, key = _place(address)
    with TemporaryDirectory(prefix="shoal-") as folder:
        path = Path(folder) / Path(key).name
        boto3.client("s3").download_file(bucket, key, str(path))
        yield path


@contextmanager
def writable(address: str) -> Iterator[Path]:
    """A local path to write a file to; on leaving without an error the file is at the address, whole."""
    if not is_s3(address):
        yield Path(address)
        return
    bucket, key = _place(address)
    with TemporaryDirectory(prefix="shoal-") as folder:
        path = Path(folder) / Path(key).name
        yield path
        boto3.client("s3").upload_file(str(path), bucket, key)


def write_text(address: str, text: str) -> None:
    """Put a small text file under an address, whole."""
    with writable(address) as path:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(text, "utf-8")
        partial.replace(path)


def _place(address: str) -> tuple[str, str]:
    """The bucket and the key of an address of S3."""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    return bucket, key
