"""Deletes the files of an EFS file system with it, and encodes object names in S3's lists.

Buckets are in ministack's memory. A file system is a folder that every node's `mount` links to, and is deleted with the
file system. An object's name may hold characters that XML cannot, so lists encode names on request.
"""

import re
import shutil
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import quote

from embedded.nodes.machine import Machines
from embedded.seams import storage
from embedded.service import Answer, Record, parameter

_NAMES = re.compile("<(Key|KeyMarker|NextKeyMarker|Prefix|Delimiter)>([^<]*)<")


def install(machines: Machines) -> None:
    """Replace ministack's deletion of file systems and its lists of versions and uploads."""
    delete = storage.delete_file_system.now

    def delete_with_its_files(identifier: str) -> Any:
        answer = delete(identifier)
        if answer[0] < 300:
            shutil.rmtree(machines.file_system(identifier), ignore_errors=True)
        return answer

    storage.delete_file_system.put(delete_with_its_files)
    storage.list_versions.wrap(_encoding)
    storage.list_uploads.wrap(_encoding)


def _encoding(listing: Callable[[str, Record], Answer]) -> Callable[[str, Record], Answer]:
    """Encode the names of a list when the request asks for it; ministack does so only in other lists."""

    def encoding(bucket: str, query: Record) -> Answer:
        status, headers, body = listing(bucket, query)
        if status == 200 and parameter(query, "encoding-type") == "url":
            renamed = _NAMES.sub(lambda name: f"<{name[1]}>{quote(unescape(name[2]))}<", body.decode())
            body = renamed.replace("<IsTruncated>", "<EncodingType>url</EncodingType><IsTruncated>", 1).encode()
        return status, headers, body

    return encoding
