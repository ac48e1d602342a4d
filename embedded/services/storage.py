"""What S3 and EFS keep on this machine, and when they let go of it.

Buckets live in ministack's memory. A file system is a folder that every node's `mount` links to; it goes with the
file system. Easy to get wrong: an object's name may hold what XML cannot, so its lists encode names when asked to.
"""

import re
import shutil
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import quote

from ministack.services import efs, s3

from embedded.nodes.machine import Machines
from embedded.service import Answer, Record

_NAMES = re.compile("<(Key|KeyMarker|NextKeyMarker|Prefix|Delimiter)>([^<]*)<")


def install(machines: Machines) -> None:
    delete = efs._delete_file_system

    def delete_with_its_files(identifier: str) -> Any:
        answer = delete(identifier)
        if answer[0] < 300:
            shutil.rmtree(machines.file_system(identifier), ignore_errors=True)
        return answer

    efs._delete_file_system = delete_with_its_files
    s3._list_object_versions = _encoding(s3._list_object_versions)
    s3._list_multipart_uploads = _encoding(s3._list_multipart_uploads)


def _encoding(listing: Callable[[str, Record], Answer]) -> Callable[[str, Record], Answer]:
    """The list with its names in URL encoding where the request asks for that; ministack does so in others alone."""

    def encoding(bucket: str, query: Record) -> Answer:
        status, headers, body = listing(bucket, query)
        if status == 200 and s3._qp(query, "encoding-type", "") == "url":
            told = _NAMES.sub(lambda name: f"<{name[1]}>{quote(unescape(name[2]))}<", body.decode())
            body = told.replace("<IsTruncated>", "<EncodingType>url</EncodingType><IsTruncated>", 1).encode()
        return status, headers, body

    return encoding
