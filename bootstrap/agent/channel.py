"""Where documents and results lie: the only channel between a launcher and the agents of nodes, and among these."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from botocore.exceptions import ClientError

from common.files import files_below, partial_path, whole_file
from corpus.reading import s3
from corpus.reading.s3 import S3Path, is_s3, place_of

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

MOST_BYTES = 1 << 20
"""Of a document; more is not read."""
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

    def remove(self, key: str) -> None: ...


class Bucket:
    def __init__(self, name: str, client: "S3Client | None" = None) -> None:
        """By default it is reached as this process reaches S3."""
        self._bucket, self._given = name, client

    @property
    def name(self) -> str:
        return f"s3://{self._bucket}"

    @property
    def _client(self) -> "S3Client":
        return self._given or s3.client()

    def read(self, key: str, known: Document | None = None) -> Document | None:
        condition = {"IfNoneMatch": known.tag} if known else {}
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=key, **condition)  # type: ignore[arg-type]
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in _UNCHANGED:
                return known
            if code in _ABSENT:
                return None
            raise
        with found["Body"] as body:
            return Document(body.read(MOST_BYTES + 1).decode("utf-8", "replace"), found["ETag"])

    def write(self, key: str, text: str) -> None:
        s3.put(self._client, S3Path(self._bucket, key), text.encode())

    def write_new(self, key: str, text: str) -> bool:
        return self.write_if(key, text, None)

    def write_if(self, key: str, text: str, known: Document | None) -> bool:
        """Write a document in the place of this one, or where there is none; whether this call wrote it."""
        return s3.put_if(self._client, S3Path(self._bucket, key), text.encode(), etag=known.tag if known else None)

    def list(self, prefix: str) -> Mapping[str, str]:
        return {each["Key"]: each["ETag"] for each in s3.list_objects(self._client, S3Path(self._bucket, prefix))}

    def get(self, key: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial:
            s3.download(self._client, S3Path(self._bucket, key), partial)

    def put(self, path: Path, key: str) -> None:
        s3.upload(self._client, path, S3Path(self._bucket, key))

    def remove(self, key: str) -> None:
        self._client.delete_object(Bucket=self._bucket, Key=key)


class SharedFolder:
    """A folder that all hosts share. Each key is the path of a file in it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, key: str, known: Document | None = None) -> Document | None:
        try:
            with (self._root / key).open("rb") as file:  # a network file system asks its server when a file is opened
                tag = _tag(os.fstat(file.fileno()))
                if known and known.tag == tag:
                    return known
                return Document(file.read(MOST_BYTES + 1).decode("utf-8", "replace"), tag)
        except FileNotFoundError:
            return None

    def write(self, key: str, text: str) -> None:
        path = self._made(key)
        with whole_file(path) as partial:
            partial.write_text(text, "utf-8")

    def write_new(self, key: str, text: str) -> bool:
        path = self._made(key)
        partial = partial_path(path)
        partial.write_text(text, "utf-8")
        try:
            path.hardlink_to(partial)  # unlike a rename it replaces nothing
        except FileExistsError:
            return False
        finally:
            partial.unlink()
        return True

    def list(self, prefix: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        above = (self._root / prefix).parent if not prefix.endswith("/") else self._root / prefix
        for path in files_below(above):
            key = path.relative_to(self._root).as_posix()
            if key.startswith(prefix) and "/." not in f"/{key}":
                with suppress(FileNotFoundError), path.open("rb") as file:
                    found[key] = _tag(os.fstat(file.fileno()))
        return found

    def get(self, key: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial:
            shutil.copyfile(self._root / key, partial)

    def put(self, path: Path, key: str) -> None:
        with whole_file(self._made(key)) as partial:
            shutil.copyfile(path, partial)

    def remove(self, key: str) -> None:
        (self._root / key).unlink(missing_ok=True)

    def _made(self, key: str) -> Path:
        path = self._root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def open_channel(address: str) -> Bucket | SharedFolder:
    """The channel at an address: s3://BUCKET, or the path of a folder that all hosts share."""
    return Bucket(place_of(address).bucket) if is_s3(address) else SharedFolder(Path(address))


def _tag(state: os.stat_result) -> str:
    return f"{state.st_mtime_ns}-{state.st_ino}-{state.st_size}"
