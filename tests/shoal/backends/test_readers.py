"""Tests of the number of readers and of their statuses in the data bucket."""

import json

import boto3
import pytest

from bootstrap.node.store import Bucket
from corpus.stream.progress import Status
from shoal.backends.deployment_data import NodeData
from shoal.backends.nodes import read_so_far
from tests.fleet import BUCKET, Fleet


@pytest.fixture(scope="module", autouse=True)
def bucket(aws):
    boto3.client("s3").create_bucket(Bucket=BUCKET)


def test_readers_are_counted_whether_they_run_or_not(aws):
    alone = Fleet().add("train", "g4dn.xlarge", 1)
    assert NodeData(alone.deployment).readers == 1  # on the first node that trains
    assert NodeData(alone.add("read", "m5.xlarge", 3, role="read").deployment).readers == 3


def test_statuses_of_readers_are_summed_and_invalid_documents_do_not_count(aws):
    store, run = Bucket(BUCKET, boto3.Session().client("s3")), "mine.20260102T030405-0a1b"
    assert read_so_far(store, run, 4) == Status()
    statuses = (
        json.dumps({"words": 100, "lines": 10, "malformed": 1, "waiting_seconds": 2.5}),
        json.dumps({"words": 20, "lines": 1, "paused_seconds": 4.0}),
        '{"words": "many"}',
    )
    for number, text in enumerate(statuses):
        store.write(f"runs/{run}/reader-{number}.json", text)
    found = read_so_far(store, run, 4)
    assert found == Status(words=120, lines=11, malformed=1, waiting_seconds=2.5, paused_seconds=4.0)
