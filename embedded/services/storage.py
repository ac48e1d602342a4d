"""What S3 and EFS keep on this machine, and when it is deleted.

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
    """Let files go with their file system, and lists have the names that they are asked for."""
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
    """The list with its names in URL encoding where the request asks for that; ministack does so in others alone."""

    def encoding(bucket: str, query: Record) -> Answer:
        status, headers, body = listing(bucket, query)
        if status == 200 and parameter(query, "encoding-type") == "url":
            told = _NAMES.sub(lambda name: f"<{name[1]}>{quote(unescape(name[2]))}<", body.decode())
            body = told.replace("<IsTruncated>", "<EncodingType>url</EncodingType><IsTruncated>", 1).encode()
        return status, headers, body

    return encoding
