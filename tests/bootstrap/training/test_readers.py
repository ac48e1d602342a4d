"""What readers of a training have told in the data bucket."""

import json
import time

import boto3
import pytest

from bootstrap.cli.stream_preview import describe_reading
from bootstrap.training.readers import count_readers, reading_now
from corpus.stream.progress import Status
from embedded.aws import EmbeddedAws
from tests.fleet import BUCKET, Fleet


@pytest.fixture(scope="module", autouse=True)
def bucket(aws: EmbeddedAws) -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)


def test_readers_are_counted_whether_they_run_or_not(aws: EmbeddedAws) -> None:
    alone = Fleet().add("train", "g4dn.xlarge", 1)
    assert count_readers(alone.deployment) == 0
    assert count_readers(alone.add("read", "m5.xlarge", 3, role="read").deployment) == 3


def test_what_readers_tell_is_added_up_and_what_others_wrote_there_does_not_count(aws: EmbeddedAws) -> None:
    s3, run = boto3.Session().client("s3"), f"told-{time.time_ns()}"
    assert reading_now(s3, BUCKET, run) is None

    def tell(number: int, text: str, *, of: str = "20260102T030405-0a1b") -> None:
        s3.put_object(Bucket=BUCKET, Key=f"runs/{run}.{of}/reader-{number}.json", Body=text.encode())

    tell(0, json.dumps({"words": 1_000, "lines": 7}), of="20250102T030405-0a1b")
    time.sleep(1.1)  # times of objects are whole seconds
    tell(0, json.dumps({"words": 100, "lines": 10, "malformed": 1, "waiting_seconds": 2.5}))
    tell(1, json.dumps({"words": 20, "lines": 1, "paused_seconds": 4.0}))
    tell(2, '{"words": "many"}')
    found = reading_now(s3, BUCKET, run)
    assert found == Status(words=120, lines=11, malformed=1, waiting_seconds=2.5, paused_seconds=4.0)
    assert describe_reading(found) == (
        "120 words in 11 lines, 1 malformed; waited 2 s for the sources, and 4 s for the ranks"
    )
