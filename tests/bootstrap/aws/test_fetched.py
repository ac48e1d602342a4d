"""Records of fetched objects."""

import io
import json

import pytest
from botocore.exceptions import ClientError

from bootstrap.aws import fetched
from corpus.reading.s3 import S3Path
from infra import topology

RUN = "one.20260102T030405-0a1b"


class Objects:
    """S3 client that keeps the objects in memory. An object's ETag is its content."""

    def __init__(self):
        self.content = {}

    def get_object(self, *, Bucket, Key):  # noqa: N803
        if (Bucket, Key) not in self.content:
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": ""}}, "GetObject")
        return {"Body": io.BytesIO(self.content[Bucket, Key])}

    def put_object(self, *, Bucket, Key, Body):  # noqa: N803
        self.content[Bucket, Key] = Body
        return {"ETag": Body.decode()}


def test_the_record_of_a_run_has_the_newest_etag_of_each_object():
    s3 = Objects()

    def recorded():
        return json.loads(s3.content["data", f"{topology.FETCHED_PREFIX}{RUN}.json"])

    fetched.record(s3, "data", {RUN: {"model/config.json": "a", "record.jsonl": "b"}}, pytest.fail)
    fetched.record(s3, "data", {RUN: {"record.jsonl": "c"}}, pytest.fail)
    assert recorded() == {"model/config.json": "a", "record.jsonl": "c"}
    fetched.put(s3, S3Path("data", f"{topology.RUNS_PREFIX}{RUN}/record.jsonl"), RUN, "d", pytest.fail)
    assert recorded() == {"model/config.json": "a", "record.jsonl": "d"}
