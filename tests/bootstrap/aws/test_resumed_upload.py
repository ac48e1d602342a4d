"""Uploads in parts: what an interrupted one has sent is not sent again, and nothing is mixed."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from bootstrap.aws.resumed_upload import upload_in_parts
from common.errors import ShoalError
from corpus.reading.s3 import S3Path
from embedded.aws import EmbeddedAws

CHUNK = 5 << 20
PLACE = S3Path("uploads", "reviews/one.json")


class InterruptedUploadError(Exception):
    """Stands for what ends a command."""


@pytest.fixture
def s3(aws: EmbeddedAws) -> Any:
    client = boto3.client("s3")
    client.create_bucket(Bucket=PLACE.bucket)
    client.delete_object(Bucket=PLACE.bucket, Key=PLACE.key)
    for each in client.list_multipart_uploads(Bucket=PLACE.bucket).get("Uploads", ()):
        client.abort_multipart_upload(Bucket=PLACE.bucket, Key=each["Key"], UploadId=each["UploadId"])
    return client


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one.json"
    path.write_bytes(os.urandom(3 * CHUNK + 17))
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return path


def sent(
    s3: Any, path: Path, numbers: list[int], *, most: int = 100, beside: Callable[[], None] = lambda: None
) -> list[int]:
    """The parts that an upload sends, which is interrupted after so many; added to `numbers`."""

    def note(params: dict[str, Any], **_: Any) -> None:
        if len(numbers) >= most:
            raise InterruptedUploadError
        numbers.append(params["query_string"]["partNumber"])
        beside()

    s3.meta.events.register("before-call.s3.UploadPart", note, unique_id="note")
    try:
        upload_in_parts(s3, path, PLACE, metadata={"changed": "1"}, count=lambda _: None, part_bytes=CHUNK)
    finally:
        s3.meta.events.unregister("before-call.s3.UploadPart", unique_id="note")
    return sorted(numbers)


def content(s3: Any) -> bytes:
    found: bytes = s3.get_object(Bucket=PLACE.bucket, Key=PLACE.key)["Body"].read()
    return found


def test_an_upload_goes_on_where_one_was_interrupted(s3: Any, file: Path) -> None:
    with pytest.raises(InterruptedUploadError):
        sent(s3, file, [], most=2)
    (upload,) = s3.list_multipart_uploads(Bucket=PLACE.bucket)["Uploads"]
    parts = s3.list_parts(Bucket=PLACE.bucket, Key=PLACE.key, UploadId=upload["UploadId"]).get("Parts", ())
    there = [each["PartNumber"] for each in parts]
    assert "Contents" not in s3.list_objects_v2(Bucket=PLACE.bucket)
    assert sorted([*there, *sent(s3, file, [])]) == [1, 2, 3, 4]
    assert content(s3) == file.read_bytes()
    assert s3.head_object(Bucket=PLACE.bucket, Key=PLACE.key)["Metadata"] == {"changed": "1"}
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=PLACE.bucket)


def test_parts_of_another_file_of_the_name_are_sent_again(s3: Any, file: Path) -> None:
    with pytest.raises(InterruptedUploadError):
        sent(s3, file, [], most=3)
    first = file.read_bytes()
    file.write_bytes(first[:CHUNK] + os.urandom(2 * CHUNK))
    os.utime(file, (1_600_000_000, 1_600_000_000))
    again = sent(s3, file, [])
    assert {2, 3} <= set(again)
    assert content(s3) == file.read_bytes()


def test_an_upload_that_was_begun_before_the_file_changed_is_not_continued(s3: Any, file: Path) -> None:
    with pytest.raises(InterruptedUploadError):
        sent(s3, file, [], most=2)
    os.utime(file, (4_000_000_000, 4_000_000_000))
    assert sent(s3, file, []) == [1, 2, 3, 4]
    assert content(s3) == file.read_bytes()
    assert len(s3.list_multipart_uploads(Bucket=PLACE.bucket)["Uploads"]) == 1  # another command may be at it


def test_a_file_that_changes_meanwhile_makes_no_object(s3: Any, file: Path) -> None:
    with pytest.raises(ShoalError, match="has changed while it was uploaded; type the command again"):
        sent(s3, file, [], beside=lambda: os.utime(file))
    assert "Contents" not in s3.list_objects_v2(Bucket=PLACE.bucket)
