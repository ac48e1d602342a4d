"""The data bucket, which is the only channel between a launcher and the agents of nodes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from botocore.exceptions import ClientError

from common.files import whole_file
from corpus.reading import s3
from corpus.reading.s3 import S3Path

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_MOST_BYTES = 1 << 20
_UNCHANGED, _ABSENT = ("304", "NotModified"), ("404", "NoSuchKey")


class Document(NamedTuple):
    """A small object, and a tag that changes with its content."""

    text: str
    tag: str


class Channel(Protocol):
    """Where documents and results lie. Raises BotoCoreError, ClientError, or OSError for a file."""

    def read(self, key: str, known: Document | None = None) -> Document | None:
        """A document, at most its first MiB; None where there is none. `known` is returned where it has not changed."""
        ...

    def write(self, key: str, text: str) -> None:
        """Write a document, which appears whole."""
        ...

    def write_new(self, key: str, text: str) -> bool:
        """Write a document where there is none yet; whether this call wrote it."""
        ...

    def list(self, prefix: str) -> Mapping[str, str]:
        """The keys that begin with a prefix, in their order, each with the tag of its content."""
        ...

    def get(self, key: str, path: Path) -> None:
        """Copy an object to a path, where it appears whole."""
        ...

    def put(self, path: Path, key: str) -> None:
        """Copy a file to an object."""
        ...

    def remove(self, key: str) -> None:
        """Remove an object, if it is there."""
        ...


class Bucket:
    """The data bucket."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _client(self) -> "S3Client":
        return s3.client()

    def read(self, key: str, known: Document | None = None) -> Document | None:
        """As in `Channel`."""
        condition = {"IfNoneMatch": known.tag} if known else {}
        try:
            found = self._client.get_object(Bucket=self._name, Key=key, **condition)  # type: ignore[arg-type]
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in _UNCHANGED:
                return known
            if code in _ABSENT:
                return None
            raise
        with found["Body"] as body:
            return Document(body.read(_MOST_BYTES + 1).decode("utf-8", "replace"), found["ETag"])

    def write(self, key: str, text: str) -> None:
        """As in `Channel`."""
        s3.put(self._client, S3Path(self._name, key), text.encode())

    def write_new(self, key: str, text: str) -> bool:
        """As in `Channel`."""
        return s3.put_new(self._client, S3Path(self._name, key), text.encode())

    def list(self, prefix: str) -> Mapping[str, str]:
        """As in `Channel`."""
        return {each["Key"]: each["ETag"] for each in s3.list_objects(self._client, S3Path(self._name, prefix))}

    def get(self, key: str, path: Path) -> None:
        """As in `Channel`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial:
            s3.download(self._client, S3Path(self._name, key), partial)

    def put(self, path: Path, key: str) -> None:
        """As in `Channel`."""
        s3.upload(self._client, path, S3Path(self._name, key))

    def remove(self, key: str) -> None:
        """As in `Channel`."""
        self._client.delete_object(Bucket=self._name, Key=key)
