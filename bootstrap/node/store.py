"""Interface of a store of documents and results, and its implementation for a bucket. A store is the only connection
between a launcher and the agents."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from botocore.exceptions import ClientError

from common.files import whole_file
from corpus.reading import s3
from corpus.reading.s3 import S3Path

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

Result = TypeVar("Result")

MAX_DOCUMENT_BYTES = 1 << 20
"""Maximum size of a document in bytes. Bytes beyond this size are not read."""
_NOT_MODIFIED = ("304", "NotModified")


class StoredDocument(NamedTuple):
    """Content of a small object, and a tag that changes whenever the content changes."""

    text: str
    tag: str


class StoredFile(NamedTuple):
    size: int
    changed: float
    """Time of the last change in seconds since 1970."""
    tag: str
    """Tag that changes whenever the content changes."""


def ignore(_: int) -> None:
    """Do nothing. This is the default of `count` parameters."""


class Store(Protocol):
    """Documents and files by key. Methods of a bucket raise BotoCoreError and ClientError; methods of a folder raise
    OSError."""

    name: str
    """Address or path of the store, for messages."""

    def read(self, key: str, known: StoredDocument | None = None) -> StoredDocument | None:
        """Return a document, or None if it does not exist.

        The text is truncated after about 1 MiB. If the document equals `known`, `known` itself is returned.
        """

    def read_from(self, key: str, offset: int, most: int) -> bytes:
        """Return at most `most` bytes of a file from an offset, or no bytes if the file does not exist."""

    def write(self, key: str, text: str) -> None:
        """Write a document atomically."""

    def write_if(self, key: str, text: str, known: StoredDocument | None) -> bool:
        """Write a document only if the stored document still equals `known`. Without `known`, write only if no document
        exists. Return whether the document was written."""

    def list(self, prefix: str) -> Mapping[str, StoredFile]:
        """Return the files with keys that start with `prefix`, sorted by key."""

    def size(self, key: str) -> int | None:
        """Return the size of a file in bytes, or None if it does not exist."""

    def get(self, key: str, path: Path, *, changed: float | None = None, count: Callable[[int], None] = ignore) -> None:
        """Copy a file of the store to a path, atomically.

        `changed` becomes the file's modification time. `count` is called with the number of new bytes.
        """

    def put(self, path: Path, key: str, count: Callable[[int], None] = ignore) -> None:
        """Copy a file to the store, atomically. `count` is called with the number of new bytes."""

    def remove(self, key: str) -> None: ...


class Bucket(Store):
    def __init__(
        self,
        bucket: str,
        client: "S3Client | None" = None,
        *,
        call: Callable[[Callable[[], Any]], Any] = lambda call: call(),
        explained: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`client` defaults to the S3 client of this process.

        `call` runs each small request, for example with retries. `explained` creates a context manager that converts
        the errors of all requests.
        """
        self.name, self._bucket, self._client_given = f"s3://{bucket}", bucket, client
        self._call, self._explained = call, explained

    @property
    def _client(self) -> "S3Client":
        return self._client_given or s3.client()

    def _call_s3(self, call: Callable[["S3Client", S3Path], Result], key: str) -> Result:
        with self._explained():
            result: Result = self._call(partial(call, self._client, S3Path(self._bucket, key)))
            return result

    def read(self, key: str, known: StoredDocument | None = None) -> StoredDocument | None:
        return self._call_s3(partial(_read_object, known), key)

    def read_from(self, key: str, offset: int, most: int) -> bytes:
        return self._call_s3(lambda client, place: s3.read_from(client, place, offset, most), key)

    def write(self, key: str, text: str) -> None:
        self._call_s3(lambda client, place: s3.put(client, place, text.encode()), key)

    def write_if(self, key: str, text: str, known: StoredDocument | None) -> bool:
        etag = known.tag if known else None
        return self._call_s3(lambda client, place: s3.put_if(client, place, text.encode(), etag=etag), key)

    def list(self, prefix: str) -> Mapping[str, StoredFile]:
        def list_files(client: "S3Client", place: S3Path) -> dict[str, StoredFile]:
            objects = s3.list_objects(client, place)
            return {
                each["Key"]: StoredFile(each["Size"], each["LastModified"].timestamp(), each["ETag"])
                for each in objects
            }

        return self._call_s3(list_files, prefix)

    def size(self, key: str) -> int | None:
        head = self._call_s3(s3.head_or_none, key)
        return None if head is None else head["ContentLength"]

    def get(self, key: str, path: Path, *, changed: float | None = None, count: Callable[[int], None] = ignore) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._explained(), whole_file(path) as partial_file:
            s3.download(self._client, S3Path(self._bucket, key), partial_file, count=count)
            if changed is not None:
                os.utime(partial_file, (changed, changed))

    def put(self, path: Path, key: str, count: Callable[[int], None] = ignore) -> None:
        with self._explained():
            s3.upload(self._client, path, S3Path(self._bucket, key), count=count)

    def remove(self, key: str) -> None:
        self._call_s3(lambda client, place: client.delete_object(Bucket=place.bucket, Key=place.key), key)


def _read_object(known: StoredDocument | None, client: "S3Client", place: S3Path) -> StoredDocument | None:
    condition: Any = {"IfNoneMatch": known.tag} if known else {}
    try:
        response = client.get_object(Bucket=place.bucket, Key=place.key, **condition)
    except ClientError as error:
        if error.response["Error"]["Code"] in _NOT_MODIFIED:
            return known
        if s3.is_missing(error):
            return None
        raise
    with response["Body"] as body:
        return StoredDocument(body.read(MAX_DOCUMENT_BYTES + 1).decode("utf-8", "replace"), response["ETag"])
