"""Deletes an EFS file system's folder when the file system is deleted, and publishes its metric of written bytes.
Encodes object names in S3's lists.

ministack holds buckets in memory. A file system is a folder that every node's `mount` links to. An object's name may
have characters that XML cannot represent, so lists encode names on request.
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

_NAMES = re.compile("<(Key|KeyMarker|NextKeyMarker|Prefix|Delimiter)>([^<]*)<")


def install(machines: Machines) -> None:
    """Replace ministack's deletion of file systems and its lists of versions and uploads."""
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


def _publish_bytes(identifier: str, folder: Path) -> None:
    """Publish the metric `DataWriteIOBytes` of the existing files. AWS also counts replaced and deleted files.

    Source: "CloudWatch metrics for Amazon EFS", read 2026-11-29.
    """
    dimensions, points = {"FileSystemId": identifier}, list[Record]()
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # nodes write and delete at the same time
                found = Path(place, name).lstat()
                written = {"Timestamp": found.st_mtime, "Value": float(found.st_size), "Unit": "Bytes"}
                points.append({**written, "Dimensions": dimensions})
    cloudwatch.set_points("AWS/EFS", "DataWriteIOBytes", dimensions, points)


def _encoding(listing: Callable[[str, Record], Answer]) -> Callable[[str, Record], Answer]:
    """Encode the names of a list if the request asks for it. ministack does so only in other lists."""

    def encoding(bucket: str, query: Record) -> Answer:
        status, headers, body = listing(bucket, query)
        if status == 200 and parameter(query, "encoding-type") == "url":
            renamed = _NAMES.sub(lambda name: f"<{name[1]}>{quote(unescape(name[2]))}<", body.decode())
            body = renamed.replace("<IsTruncated>", "<EncodingType>url</EncodingType><IsTruncated>", 1).encode()
        return status, headers, body

    return encoding
