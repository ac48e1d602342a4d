"""What the ranks of a run print, followed in the data bucket while it grows."""

import boto3
import pytest

from bootstrap.lifecycle.logs import RunLogs
from common.errors import ShoalError
from embedded.aws import EmbeddedAws

BUCKET, RUN = "logs-of-runs", "demo.20260102T030405-0a1b"


def write(name: str, text: str) -> None:
    boto3.client("s3").put_object(Bucket=BUCKET, Key=f"runs/{RUN}/{name}", Body=text.encode())


def test_each_line_is_shown_once_when_it_is_whole_with_the_name_of_its_log(aws: EmbeddedAws) -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    logs = RunLogs(boto3.client("s3"), BUCKET, RUN)
    assert (list(logs.more()), logs.is_there()) == ([], False)
    write("node-0.log", "one\ntw")
    write("node-1.log", "\x1b[31mred\n")
    write("record.jsonl", "{}\n")
    write("checkpoints/node-2.log", "no log\n")
    assert logs.is_there()
    assert list(logs.more()) == ["node-0: one", "node-1: ?[31mred"]
    assert list(logs.more()) == []
    write("node-0.log", "one\ntwo\nthree\n")
    assert list(logs.more()) == ["node-0: two", "node-0: three"]
    write("node-0.log", "anew\n")  # by another node
    assert list(logs.more()) == ["node-0: anew"]


def test_what_is_no_run_has_no_logs() -> None:
    with pytest.raises(ShoalError):
        RunLogs(boto3.client("s3"), BUCKET, "../x")
