"""Folders and metrics of EFS file systems, and names of S3 objects: their length, and their encoding in lists.

A file system is a folder, to which the `mount` command of nodes creates links. When a file system is deleted, its
folder is deleted, too. A metric shows the file system's written bytes.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from shoal_local_aws.nodes.machine import Machines
from shoal_local_aws.seams import cloudwatch, storage
from shoal_local_aws.service import Answer, Record, parameter

_MAX_KEY_BYTES = 1024
_MAX_DELETED = 1000
_OBJECT = re.compile(rb"<(?:\w+:)?Object[\s>]")
_NAMES = re.compile("<(Key|KeyMarker|NextKeyMarker|Prefix|Delimiter)>([^<]*)<")


def install(machines: Machines) -> None:
    """Replace ministack's DeleteFileSystem, and wrap its lists of object versions and uploads, and all S3 requests."""
    delete = storage.delete_file_system.now

    def delete_with_its_files(identifier: str) -> Any:
        answer = delete(identifier)
        if answer[0] < 300:
            shutil.rmtree(machines.file_system(identifier), ignore_errors=True)
        return answer

    def with_bytes_written(answer: Callable[..., Any]) -> Callable[..., Any]:
        def answered(*request: Any) -> Any:
            for identifier in storage.file_systems:
                _publish_bytes(identifier, machines.file_system(identifier))
            return answer(*request)

        return answered

    cloudwatch.statistics.wrap(with_bytes_written)
    storage.delete_file_system.put(delete_with_its_files)
    storage.list_versions.wrap(_encoding)
    storage.list_uploads.wrap(_encoding)
    storage.dispatch.wrap(_refusing_long_keys)
    storage.delete_objects.wrap(_refusing_many_keys)


def _publish_bytes(identifier: str, folder: Path) -> None:
    """Publish the metric `DataWriteIOBytes`: the bytes of all existing files. AWS also counts replaced and deleted
    files."""
    dimensions, points = {"FileSystemId": identifier}, list[Record]()
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # nodes may write and delete files at the same time
                found = Path(place, name).lstat()
                written = {"Timestamp": found.st_mtime, "Value": float(found.st_size), "Unit": "Bytes"}
                points.append({**written, "Dimensions": dimensions})
    # Rule: DataWriteIOBytes counts written bytes. Source: "CloudWatch metrics for Amazon EFS".
    cloudwatch.set_points("AWS/EFS", "DataWriteIOBytes", dimensions, points)


def _encoding(listing: Callable[[str, Record], Answer]) -> Callable[[str, Record], Answer]:
    """Make `listing` encode names if the request asks for this. ministack does so only in its other list operations."""

    def encoding(bucket: str, query: Record) -> Answer:
        status, headers, body = listing(bucket, query)
        # Rule: Lists encode names on request. Source: botocore s3 ListObjectVersions.
        if status == 200 and parameter(query, "encoding-type") == "url":
            renamed = _NAMES.sub(lambda name: f"<{name[1]}>{quote(unescape(name[2]))}<", body.decode())
            body = renamed.replace("<IsTruncated>", "<EncodingType>url</EncodingType><IsTruncated>", 1).encode()
        return status, headers, body

    return encoding


def _refusing_long_keys(dispatch: Callable[..., Answer]) -> Callable[..., Answer]:
    """Make every request for an object refuse a key of more than 1,024 bytes in UTF-8, as S3 does."""

    def dispatched(method: str, bucket: str, key: str, *rest: Any) -> Answer:
        size = len(key.encode("utf-8", "surrogateescape"))
        # Rule: A key has at most 1,024 bytes. Source: docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html;
        # versity/versitygw#2080 for the error document.
        if size > _MAX_KEY_BYTES:
            sizes = {"Size": str(size), "MaxSizeAllowed": str(_MAX_KEY_BYTES)}
            return storage.error("KeyTooLongError", "Your key is too long", 400, **sizes)
        return dispatch(method, bucket, key, *rest)

    return dispatched


def _refusing_many_keys(delete: Callable[..., Answer]) -> Callable[..., Answer]:
    """Make DeleteObjects refuse more than 1,000 keys, as S3 does."""

    def deleted(bucket: str, body: bytes, *rest: Any) -> Answer:
        # Rule: A request deletes at most 1,000 keys. Source: capralifecycle/webapp-deploy-lambda#179.
        if len(_OBJECT.findall(body)) > _MAX_DELETED:
            message = "The XML you provided was not well-formed or did not validate against our published schema"
            return storage.error("MalformedXML", message, 400)
        return delete(bucket, body, *rest)

    return deleted
