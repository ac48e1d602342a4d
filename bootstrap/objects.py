"""Objects of S3 as the launchers need them: files up and down with a bar, folders listed and emptied."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from bootstrap.errors import ShoalError
from bootstrap.progress import Bars

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_TRANSFER = TransferConfig(multipart_threshold=64 << 20, multipart_chunksize=64 << 20)


class Place(NamedTuple):
    """Where an object is, or where names start."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def parse(address: str) -> Place:
    """The bucket and the key of an s3:// address. Raises ShoalError for any other text."""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    if not address.startswith("s3://") or not bucket:
        raise ShoalError(f"'{address}' is no address of S3; it should look like s3://bucket/name")
    return Place(bucket, key)


def sizes(client: "S3Client", place: Place) -> dict[str, int]:
    """The keys that start with a place's, and the bytes of each. Raises ShoalError when the bucket cannot be read."""
    pages = client.get_paginator("list_objects_v2")
    try:
        return {
            found["Key"]: found["Size"]
            for page in pages.paginate(Bucket=place.bucket, Prefix=place.key)
            for found in page.get("Contents", ())
        }
    except ClientError as error:
        raise ShoalError(f"cannot list {place}: {error}") from error


def upload(client: "S3Client", files: list[Path], folder: Place, bars: Bars) -> list[str]:
    """Put files into a folder, under their names; those that are there with their size already are left.

    Returns their addresses. Raises ShoalError when two files have one name, or the bucket refuses.
    """
    names = [path.name for path in files]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ShoalError(f"two input files are named {twice}; in the bucket one would replace the other, so rename one")
    there = sizes(client, folder)
    bars.stage("upload", sum(path.stat().st_size for path in files))
    done = 0
    for path in files:
        key = folder.key + path.name
        size = path.stat().st_size
        if there.get(key) != size:
            sent = [done]

            def count(more: int, sent: list[int] = sent) -> None:
                sent[0] += more
                bars.at(sent[0])

            try:
                client.upload_file(os.fspath(path), folder.bucket, key, Callback=count, Config=_TRANSFER)
            except ClientError as error:
                raise ShoalError(f"cannot upload {path} to {folder}: {error}") from error
        done += size
        bars.at(done)
    return [str(Place(folder.bucket, folder.key + name)) for name in names]


def download(client: "S3Client", place: Place, folder: Path) -> list[Path]:
    """Copy what is below a place into a folder, or one object to that path; returns the files."""
    files = []
    for key in sizes(client, place):
        path = folder / key.removeprefix(place.key).lstrip("/") if key != place.key else folder
        path.parent.mkdir(parents=True, exist_ok=True)
        client.download_file(place.bucket, key, os.fspath(path), Config=_TRANSFER)
        files.append(path)
    return files


def read_text(client: "S3Client", place: Place) -> str | None:
    """A small object's text, or nothing when there is none."""
    try:
        return client.get_object(Bucket=place.bucket, Key=place.key)["Body"].read().decode()
    except client.exceptions.NoSuchKey:
        return None


def remove(client: "S3Client", place: Place) -> None:
    """Delete everything below a place."""
    keys = list(sizes(client, place))
    for start in range(0, len(keys), 1000):
        client.delete_objects(
            Bucket=place.bucket, Delete={"Objects": [{"Key": key} for key in keys[start : start + 1000]]}
        )
