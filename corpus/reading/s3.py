"""Operations on S3 objects with a given client, and the S3 client of this process.

boto3 is imported only when S3 is used, so that commands on local files start half a second sooner and use 40 MB less
memory. Use `is_missing` to recognise the error of a missing object, because its code has several forms.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from common.aws_session import core_session
from common.display import size
from common.errors import DataError

if TYPE_CHECKING:
    from boto3.s3.transfer import TransferConfig
    from botocore.exceptions import ClientError
    from botocore.response import StreamingBody
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ErrorTypeDef, HeadObjectOutputTypeDef, ObjectIdentifierTypeDef, ObjectTypeDef

CHUNK_BYTES = 8 << 20
"""Part size of multipart transfers, in bytes."""

_SCHEME = "s3://"
_ATTEMPTS = 10
_MOST_TEXT = 1 << 20
_NO_OBJECT = "404", "NoSuchKey", "NotFound", "KeyTooLongError"


class S3Path(NamedTuple):
    """Bucket and key of an S3 object, or a bucket and a key prefix."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{_SCHEME}{self.bucket}/{self.key}"


def is_s3(address: str) -> bool:
    return address.startswith(_SCHEME)


def place_of(address: str) -> S3Path:
    """Return the bucket and key of an S3 address. The key can be empty. Raises DataError for any other address."""
    bucket, _, key = address.removeprefix(_SCHEME).partition("/")
    if not is_s3(address) or not bucket:
        raise DataError(f"'{address}' is not an S3 address; it must look like s3://bucket/name")
    return S3Path(bucket, key)


_clients: "dict[tuple[int, str | None], S3Client]" = {}
"""Client for each process and endpoint. Each process needs its own, because connections do not survive a fork."""


def client() -> "S3Client":
    """Return the S3 client of this process.

    After throttling or a lost connection, the client repeats a request, up to ten attempts in all.
    """
    key = os.getpid(), os.environ.get("AWS_ENDPOINT_URL")
    if key not in _clients:
        _clients[key] = _new_client()
    return _clients[key]


def _new_client() -> "S3Client":
    import boto3
    from botocore.config import Config

    retries = Config(retries={"mode": "standard", "max_attempts": _ATTEMPTS}, connect_timeout=10, read_timeout=60)
    return boto3.Session(botocore_session=core_session()).client("s3", config=retries)


@contextmanager
def explained_errors(address: str, verb: str) -> Iterator[None]:
    """Convert an S3 error, after all retries, to a DataError.

    In its message, `verb` names the operation, such as `read`.
    """
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _client_error(error, address, verb) from error
    except (BotoCoreError, Boto3Error) as error:
        # Errors of a transfer hide the error of S3 behind a message about a temporary file.
        if isinstance(error.__context__, ClientError):
            raise _client_error(error.__context__, address, verb) from error
        raise DataError(f"cannot {verb} {address}: {error}; check the network and run the command again") from error


def _client_error(error: "ClientError", address: str, verb: str) -> DataError:
    code = error_code(error)
    if code == "NoSuchBucket":
        return DataError(f"cannot {verb} {address}: there is no bucket {place_of(address).bucket}; check the address")
    if is_missing(error):
        return DataError(f"there is no object at {address}; check the address")
    if code in ("412", "PreconditionFailed"):
        return DataError(f"{address} was replaced while Shoal read it; run the command again")
    return DataError(f"cannot {verb} {address}: {error}; check the address and your permissions")


def error_code(error: "ClientError") -> str:
    return error.response["Error"].get("Code", "")


def is_missing(error: "ClientError") -> bool:
    """Return whether S3 answers that an object does not exist.

    The code is the HTTP status if the response has no readable error document: for HEAD requests, and if the document
    quotes a key that XML cannot represent. A key of more than 1,024 bytes cannot exist.
    """
    return error_code(error) in _NO_OBJECT


def list_objects(s3: "S3Client", place: S3Path, at_most: int | None = None) -> Iterator["ObjectTypeDef"]:
    """Yield the objects with keys that begin with the key of `place`, in key order, at most `at_most` of them."""
    limit: Any = {} if at_most is None else {"MaxItems": at_most, "PageSize": at_most}
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=place.key, PaginationConfig=limit)
    for page in pages:
        yield from page.get("Contents", ())


def delete_below(s3: "S3Client", place: S3Path) -> Iterator["ErrorTypeDef"]:
    """Delete the objects with keys that begin with the key of `place`, in batches. Yield an error for each object that
    S3 refuses to delete."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=place.key):
        batch: list[ObjectIdentifierTypeDef] = [{"Key": each["Key"]} for each in page.get("Contents", ())]
        if batch:
            yield from s3.delete_objects(Bucket=place.bucket, Delete={"Objects": batch, "Quiet": True}).get(
                "Errors", ()
            )


def head(s3: "S3Client", place: S3Path) -> "HeadObjectOutputTypeDef":
    """Return S3's response to a HEAD request, which has the metadata of an object."""
    return s3.head_object(Bucket=place.bucket, Key=place.key)


def head_or_none(s3: "S3Client", place: S3Path) -> "HeadObjectOutputTypeDef | None":
    """Return the response of `head`, or None if the object does not exist."""
    try:
        return head(s3, place)
    except s3.exceptions.ClientError as error:
        if is_missing(error):
            return None
        raise


def get(
    s3: "S3Client", place: S3Path, start: int = 0, end: int | None = None, *, etag: str | None = None
) -> "StreamingBody":
    """Return a stream of an object's bytes in [`start`, `end`). The caller must close the stream.

    If `etag` is given, S3 rejects the request unless the object has this ETag. S3 rejects any range of an empty object,
    so a request for a whole object has no range.
    """
    request: Any = {} if etag is None else {"IfMatch": etag}
    if start or end is not None:
        request["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
    return s3.get_object(Bucket=place.bucket, Key=place.key, **request)["Body"]


def read_text(s3: "S3Client", place: S3Path) -> str | None:
    """Return the content of a small object as text (at most the first MiB), or None if the object does not exist.

    Bytes that are not UTF-8 become U+FFFD. Do not trust the text, because any process on a node might have written it.
    """
    try:
        found = get(s3, place)
    except s3.exceptions.ClientError as error:
        if is_missing(error):
            return None
        raise
    with closing(found) as body:
        return body.read(_MOST_TEXT).decode("utf-8", "replace")


def read_from(s3: "S3Client", place: S3Path, offset: int, most: int) -> bytes:
    """Return the bytes of an object from `offset` on, at most `most` of them.

    Return b"" if the object is shorter or missing.
    """
    try:
        return get(s3, place, offset, offset + most).read(most)
    except s3.exceptions.ClientError as error:
        if is_missing(error) or error_code(error) in ("InvalidRange", "416"):
            return b""
        raise


def download(
    s3: "S3Client",
    place: S3Path,
    path: Path,
    *,
    most: int | None = None,
    count: Callable[[int], None] | None = None,
) -> None:
    """Download an object to a path. `count` is called repeatedly with the number of bytes since the last call.

    Raises DataError for an object of more than `most` bytes.
    """
    if most is not None and (stored := head(s3, place)["ContentLength"]) > most:
        raise DataError(f"{place} has {size(stored)}, but such a file has at most {size(most)}; copy it again")
    s3.download_file(place.bucket, place.key, os.fspath(path), Callback=count, Config=_transfer(CHUNK_BYTES))


def upload(
    s3: "S3Client",
    path: Path,
    place: S3Path,
    *,
    metadata: Mapping[str, str] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    count: Callable[[int], None] | None = None,
) -> None:
    """Upload a file.

    The object appears only when it is complete. `count` is called with the number of bytes since the last call.
    """
    extra = None if metadata is None else {"Metadata": dict(metadata)}
    s3.upload_file(
        os.fspath(path), place.bucket, place.key, ExtraArgs=extra, Callback=count, Config=_transfer(chunk_bytes)
    )


def _transfer(chunk_bytes: int) -> "TransferConfig":
    from boto3.s3.transfer import TransferConfig

    # The client retries a request only until the response begins. These attempts are for responses that are interrupted
    # later.
    return TransferConfig(
        multipart_threshold=chunk_bytes, multipart_chunksize=chunk_bytes, num_download_attempts=_ATTEMPTS
    )


def put(s3: "S3Client", place: S3Path, content: bytes) -> None:
    """Write a small object."""
    s3.put_object(Bucket=place.bucket, Key=place.key, Body=content)


def put_if(s3: "S3Client", place: S3Path, content: bytes, *, etag: str | None) -> bool:
    """Write a small object if the existing object has this `etag`. Without an `etag`, write it if no object exists.

    Return whether this call wrote it.
    """
    condition: Any = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
    try:
        s3.put_object(Bucket=place.bucket, Key=place.key, Body=content, **condition)
    except s3.exceptions.ClientError as error:
        gone = etag is not None and is_missing(error)
        if not gone and error_code(error) not in ("PreconditionFailed", "412", "ConditionalRequestConflict", "409"):
            raise
        # If a response is lost, boto3 sends the request again. S3 then rejects it because of the object that the first
        # request wrote.
        return read_from(s3, place, 0, len(content) + 1) == content
    return True
