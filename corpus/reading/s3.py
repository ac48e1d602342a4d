"""Objects of S3: each operation that Shoal needs on them, once, for whatever client; and a client for this process.

Nothing of AWS's library is loaded before it is needed: work on local files starts half a second sooner, and 40 MB
smaller. The easy mistake is to look for an absent object by its error's name: a HEAD has no body, and says only 404.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus.errors import DataError

if TYPE_CHECKING:
    from boto3.s3.transfer import TransferConfig
    from botocore.exceptions import ClientError
    from botocore.response import StreamingBody
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import HeadObjectOutputTypeDef, ObjectTypeDef

CHUNK_BYTES = 8 << 20
"""Of what is larger, so much travels in one piece."""

_SCHEME = "s3://"
_ATTEMPTS = 10
_MOST_TEXT = 1 << 20


class Place(NamedTuple):
    """Where an object is, or where names start."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{_SCHEME}{self.bucket}/{self.key}"


def is_s3(address: str) -> bool:
    """Whether an address is one of S3."""
    return address.startswith(_SCHEME)


def place_of(address: str) -> Place:
    """The bucket and the key of an address of S3, either of which may be empty."""
    bucket, _, key = address.removeprefix(_SCHEME).partition("/")
    return Place(bucket, key)


def client() -> "S3Client":
    """The client of S3 for this process; throttled calls and lost connections are tried ten times."""
    return _client(os.getpid(), os.environ.get("AWS_ENDPOINT_URL"))


@cache
def _client(process: int, endpoint: str | None) -> "S3Client":  # noqa: ARG001
    """A client each process, as connections do not survive a fork, and each endpoint."""
    import boto3
    from botocore.config import Config

    retries = Config(retries={"mode": "standard", "max_attempts": _ATTEMPTS}, connect_timeout=10, read_timeout=60)
    return boto3.client("s3", config=retries)


@contextmanager
def explained_errors(address: str, verb: str) -> Iterator[None]:
    """Say in a sentence what S3 refused or could not do, after all attempts."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _client_error(error, address, verb) from error
    except (BotoCoreError, Boto3Error) as error:
        # A transfer wraps what S3 answered in words about its temporary file.
        if isinstance(error.__context__, ClientError):
            raise _client_error(error.__context__, address, verb) from error
        raise DataError(f"cannot {verb} {address}: {error}; check the network, and run it again") from error


def _client_error(error: "ClientError", address: str, verb: str) -> DataError:
    code = _error_code(error)
    if code == "NoSuchBucket":
        return DataError(f"cannot {verb} {address}: there is no bucket {place_of(address).bucket}; check the address")
    if code in ("404", "NoSuchKey"):
        return DataError(f"there is nothing at {address}; check the address")
    if code in ("412", "PreconditionFailed"):
        return DataError(f"{address} was replaced while it was read; run it again")
    return DataError(f"cannot {verb} {address}: {error}; check the address and your rights to it")


def _error_code(error: "ClientError") -> str:
    return error.response["Error"].get("Code", "")


def check_bucket(address: str) -> None:
    """Refuse an address to write to whose bucket is not there, or not open to us. Raises DataError then."""
    from botocore.exceptions import ClientError, ParamValidationError

    bucket = place_of(address).bucket
    try:
        client().head_bucket(Bucket=bucket)
    except ParamValidationError as error:
        raise DataError(f"cannot write to {address}: '{bucket}' is no name of a bucket; check the address") from error
    except ClientError as error:
        if _error_code(error) in ("404", "NoSuchBucket"):
            raise DataError(
                f"cannot write to {address}: there is no bucket {bucket}; make it first, or check the address"
            ) from error
        raise DataError(
            f"cannot write to {address}: {error}; take a bucket in which you may list, read and write objects"
        ) from error


def list_objects(s3: "S3Client", place: Place, at_most: int | None = None) -> Iterator["ObjectTypeDef"]:
    """The objects whose keys start with a place's, in the order of their keys; `at_most` so many where it is given."""
    limit: Any = {} if at_most is None else {"MaxItems": at_most, "PageSize": at_most}
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=place.key, PaginationConfig=limit)
    for page in pages:
        yield from page.get("Contents", ())


def head(s3: "S3Client", place: Place) -> "HeadObjectOutputTypeDef":
    """What is known of an object without its bytes."""
    return s3.head_object(Bucket=place.bucket, Key=place.key)


def head_if_there(s3: "S3Client", place: Place) -> "HeadObjectOutputTypeDef | None":
    """The same; nothing when there is none."""
    try:
        return head(s3, place)
    except s3.exceptions.ClientError as error:
        if _error_code(error) in ("404", "NoSuchKey", "NotFound"):
            return None
        raise


def get(
    s3: "S3Client", place: Place, start: int = 0, end: int | None = None, *, etag: str | None = None
) -> "StreamingBody":
    """An object's bytes from `start` on, and before `end`, to be closed by the caller; of the one that had this `etag`.

    No range can be asked of an empty object, so none is where all of it is wanted.
    """
    request: Any = {} if etag is None else {"IfMatch": etag}
    if start or end is not None:
        request["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
    return s3.get_object(Bucket=place.bucket, Key=place.key, **request)["Body"]


def read_text(s3: "S3Client", place: Place) -> str | None:
    """A small object's text, or nothing when there is none; of a large one its first MiB.

    Whoever is root on a node may have written it: what is no UTF-8 has a sign of its own in the text.
    """
    try:
        found = get(s3, place)
    except s3.exceptions.NoSuchKey:
        return None
    with closing(found) as body:
        return body.read(_MOST_TEXT).decode("utf-8", "replace")


def read_from(s3: "S3Client", place: Place, offset: int) -> bytes:
    """An object's bytes from an offset on: nothing when it is no longer than that, or not there."""
    try:
        return get(s3, place, offset).read()
    except s3.exceptions.ClientError as error:
        if _error_code(error) in ("InvalidRange", "416", "NoSuchKey", "404"):
            return b""
        raise


def download(
    s3: "S3Client",
    place: Place,
    path: Path,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    count: Callable[[int], None] | None = None,
) -> None:
    """Copy an object to a path. `count` is called with the bytes that have come since."""
    s3.download_file(place.bucket, place.key, os.fspath(path), Callback=count, Config=_transfer(chunk_bytes))


def upload(
    s3: "S3Client",
    path: Path,
    place: Place,
    *,
    metadata: Mapping[str, str] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    count: Callable[[int], None] | None = None,
) -> None:
    """Copy a file to an object, which appears whole. `count` is called with the bytes that were sent since."""
    extra = None if metadata is None else {"Metadata": dict(metadata)}
    s3.upload_file(
        os.fspath(path), place.bucket, place.key, ExtraArgs=extra, Callback=count, Config=_transfer(chunk_bytes)
    )


def _transfer(chunk_bytes: int) -> "TransferConfig":
    from boto3.s3.transfer import TransferConfig

    # The client's own attempts end where an answer begins; those that break off later are counted here.
    return TransferConfig(
        multipart_threshold=chunk_bytes, multipart_chunksize=chunk_bytes, num_download_attempts=_ATTEMPTS
    )


def put(s3: "S3Client", place: Place, content: bytes) -> None:
    """Write a small object, whole."""
    s3.put_object(Bucket=place.bucket, Key=place.key, Body=content)


def put_new(s3: "S3Client", place: Place, content: bytes) -> bool:
    """Write a small object unless there is one already, by another's hand; whether it is there by this one's."""
    try:
        s3.put_object(Bucket=place.bucket, Key=place.key, Body=content, IfNoneMatch="*")
    except s3.exceptions.ClientError as error:
        if _error_code(error) not in ("PreconditionFailed", "412", "ConditionalRequestConflict", "409"):
            raise
        # An answer that was lost makes boto3 ask once more, and finds what it has written itself.
        return read_from(s3, place, 0) == content
    return True
