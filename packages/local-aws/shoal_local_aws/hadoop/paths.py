"""Access to files by their Hadoop paths.

A path names an S3 object (`s3://BUCKET/KEY`), a file of the primary node (`file:///PATH`), or a file of HDFS
(`hdfs:///PATH`, or a path without a scheme). The files of HDFS are in a folder of the primary node. `Files` downloads
an object to a temporary file for each reader, and never reads a whole object into memory.
"""

import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

from shoal_local_aws.emulator_error import EmulatorError

_TRIES = 15  # fs.s3.maxRetries
_HDFS = Path("mnt", "hdfs")
"""Folder for the files of HDFS, below the root of the primary node."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file or folder with its Hadoop path and its size in bytes."""

    path: str
    size: int
    folder: bool

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]


class Files:
    """Finds, reads, writes and removes files by their Hadoop paths."""

    @cached_property
    def _s3(self) -> Any:
        return boto3.client("s3", config=Config(retries={"mode": "standard", "total_max_attempts": _TRIES}))

    def find(self, path: str) -> Entry | None:
        """Return the file or folder at a path, or None if it does not exist."""
        local = _local(path)
        if local is not None:
            return _local_entry(path, local) if local.exists() else None
        bucket, key = _object(path)
        if key:
            try:
                size = self._s3.head_object(Bucket=bucket, Key=key)["ContentLength"]
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                    raise
            else:
                return Entry(path=path, size=size, folder=False)
        prefix = f"{key.rstrip('/')}/" if key else ""
        listing = self._s3.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
        return Entry(path=path, size=0, folder=True) if listing["KeyCount"] else None

    def children(self, path: str) -> list[Entry]:
        """Return the files and folders directly in a folder, sorted by name."""
        local = _local(path)
        if local is not None:
            inside = (_local_entry(f"{path.rstrip('/')}/{child.name}", child) for child in local.iterdir())
            return sorted(inside, key=lambda entry: entry.path)
        bucket, key = _object(path)
        prefix = f"{key.rstrip('/')}/" if key else ""
        found = []
        for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/"):
            found += [
                Entry(path=f"s3://{bucket}/{entry['Key']}", size=entry["Size"], folder=False)
                for entry in page.get("Contents", [])
                if entry["Key"] != prefix
            ]
            found += [
                Entry(path=f"s3://{bucket}/{entry['Prefix']}", size=0, folder=True)
                for entry in page.get("CommonPrefixes", [])
            ]
        return sorted(found, key=lambda entry: entry.path)

    def open(self, path: str) -> IO[bytes]:
        if local := _local(path):
            return local.open("rb")
        bucket, key = _object(path)
        copy = TemporaryFile()  # noqa: SIM115 -- the caller closes it
        self._s3.download_fileobj(bucket, key, copy, Config=TransferConfig(num_download_attempts=_TRIES))
        copy.seek(0)
        return copy

    def put(self, source: Path, path: str) -> None:
        local = _local(path)
        if local is None:
            bucket, key = _object(path)
            self._s3.upload_file(str(source), bucket, key)
        else:
            local.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, local)

    def remove(self, path: str) -> None:
        local = _local(path)
        if local is None:
            bucket, key = _object(path)
            self._s3.delete_object(Bucket=bucket, Key=key)
        else:
            local.unlink(missing_ok=True)


def make_folder(path: str) -> None:
    """Create a folder and its parents. S3 has no folders."""
    if (local := _local(path)) is not None:
        local.mkdir(parents=True, exist_ok=True)


def _local(path: str) -> Path | None:
    """Return the local file that a Hadoop path names, or None for an S3 object."""
    parts = urlsplit(path)
    match parts.scheme:
        case "s3":
            return None
        case "file":
            return Path(unquote(parts.path))
        case "hdfs" | "":
            return Path(os.environ.get("NODE_ROOT", "/")) / _HDFS / os.path.normpath(f"/{parts.path}").lstrip("/")
    raise EmulatorError(f"Path {path}: the embedded Hadoop does not support this file system; use s3:// or hdfs://.")


def _object(path: str) -> tuple[str, str]:
    bucket, _, key = path.removeprefix("s3://").partition("/")
    return bucket, key


def _local_entry(path: str, local: Path) -> Entry:
    folder = local.is_dir()
    return Entry(path=path, size=0 if folder else local.stat().st_size, folder=folder)
