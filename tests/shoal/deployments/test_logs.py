"""Tests of logs: of EMR's steps, of the guard, of what was deleted, and of a run in the data bucket."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError

import shoal.deployments.logs
from common import names
from common.errors import ShoalError
from shoal.aws import stacks
from shoal.aws.account import Account
from shoal.cli.target import Target
from shoal.cli.verbs.logs import _is_active
from shoal.deployments import logs
from shoal.deployments.logs import ProgramLogs
from shoal.deployments.status import ClusterStatus, Status

OUTPUTS = {names.OUTPUT_DATA_BUCKET: "data", names.OUTPUT_GUARD: "guard"}
CLUSTER = ClusterStatus(identifier="j-1", state="WAITING", reason="", nodes=[], most=[])
NOW = Status(
    name="mine",
    stack={"Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in OUTPUTS.items()]},  # type: ignore[typeddict-item]
    groups=[],
    cluster=CLUSTER,
    guard=None,
)


class Answers(Account):
    """Account in which all services are this client."""

    def __init__(self, **client: Any) -> None:
        super().__init__(Mock())
        self.answers = Mock(**client)

    def client(self, *_: object) -> Any:
        return self.answers


def test_the_newest_five_steps_are_shown() -> None:
    every = [{"Id": f"s-{number}", "Name": "x", "Status": {"State": "COMPLETED"}} for number in range(120)]
    pages = [{"Steps": every[first : first + 50]} for first in range(0, 120, 50)]
    account = Answers(get_paginator=lambda _: Mock(paginate=lambda **_: pages))
    assert [each.who for each in logs.steps(account, NOW)] == [f"step s-{number} (x)" for number in range(5)]


def test_the_guards_own_lines_of_the_last_24_hours_are_shown_in_their_order(monkeypatch) -> None:
    monkeypatch.setattr("time.time", lambda: 90_000.0)
    lines = ["START RequestId: x", "one", "two\n", "three", "REPORT RequestId: x"]
    monkeypatch.setattr(logs, "_LINES", 2)
    events = [{"timestamp": second, "message": line} for second, line in enumerate(lines)]
    paginate = Mock(return_value=[{"events": events[:2:-1]}, {"events": events[:3]}])
    account = Answers(get_function_configuration=Mock(return_value={}), get_paginator=lambda _: Mock(paginate=paginate))
    excerpt = logs.guard(account, NOW)
    assert excerpt is not None
    assert excerpt.lines == ["two", "three"]
    paginate.assert_called_once_with(logGroupName="/aws/lambda/guard", startTime=(90_000 - 24 * 60 * 60) * 1000)


def test_a_deleted_bucket_or_guard_has_no_logs() -> None:
    def gone(code: str) -> Mock:
        return Mock(side_effect=ClientError({"Error": {"Code": code, "Message": ""}}, "Read"))

    account = Answers(get_paginator=gone("NoSuchBucket"), get_function_configuration=gone("ResourceNotFoundException"))
    assert logs.nodes(account, NOW) == []
    assert logs.guard(account, NOW) is None


def test_a_log_that_aws_refuses_to_return_is_unknown() -> None:
    refused = Mock(side_effect=ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "Read"))
    account = Answers(get_function_configuration=Mock(return_value={}), get_paginator=refused)
    assert logs.guard(account, NOW).is_unknown


BUCKET, RUN = "logs-of-runs", "demo.20260102T030405-0a1b"


def write(name: str, text: str, run: str = RUN) -> None:
    boto3.client("s3").put_object(Bucket=BUCKET, Key=f"runs/{run}/{name}", Body=text.encode())


@pytest.fixture(scope="module", autouse=True)
def bucket(aws) -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)


def test_each_complete_line_is_shown_once_with_its_node_and_rank(messages) -> None:
    with messages.raises(ShoalError):
        ProgramLogs(boto3.client("s3"), BUCKET, RUN)
    write("node-0.log", "[rank 0] one\n[rank 1] tw")
    write("node-1.log", "\x1b[31mred\n")
    write("record.jsonl", "{}\n")
    write("checkpoints/node-2.log", "no log\n")
    logs = ProgramLogs(boto3.client("s3"), BUCKET, RUN)
    assert list(logs.more()) == ["node-0 rank 0 | one", "node-1 | \x1b[31mred"]
    assert list(logs.more()) == []
    write("node-0.log", "[rank 0] one\n[rank 1] two\n[rank 1] [rank 2] three\n")
    assert list(logs.more()) == ["node-0 rank 1 | two", "node-0 rank 1 | [rank 2] three"]
    write("node-0-attempt-2.log", "[rank 0] by another node\n")
    write("reader-3.log", "a line\n")
    assert list(logs.more()) == ["node-0 attempt 2 rank 0 | by another node", "reader-3 | a line"]


def test_a_log_is_read_in_pieces_and_a_longer_line_is_cut(monkeypatch) -> None:
    other = "demo.20260102T030405-0a1c"
    write("node-0.log", "one\ntwo\nthis is long\nthree\nfo", other)
    monkeypatch.setattr(shoal.deployments.logs, "_PIECE_BYTES", 8)
    lines = ProgramLogs(boto3.client("s3"), BUCKET, other).more()
    assert [line.partition(" | ")[2] for line in lines] == ["one", "two", "this is ", "long", "three"]


def test_the_lines_of_one_rank_are_shown_alone() -> None:
    write("node-0.log", "[rank 0] one\nfrom the launcher\n[rank 1] two\n")
    write("node-1.log", "[rank 12] no\n[rank 1]\n")
    write("node-0-attempt-2.log", "[rank 1] again\n")
    logs = ProgramLogs(boto3.client("s3"), BUCKET, RUN)
    lines = list(logs.more(1))
    assert [line for line in lines if "rank" in line] == ["node-0 attempt 2 rank 1 | again", "node-0 rank 1 | two"]
    assert len(lines) == 2


def test_an_unknown_run_has_no_logs() -> None:
    with pytest.raises(ShoalError):
        ProgramLogs(boto3.client("s3"), BUCKET, "../x")


def test_a_deployment_that_is_being_updated_does_not_end_the_logs_of_its_run(monkeypatch) -> None:
    account: Any = SimpleNamespace(client=lambda _: None, session=None)
    monkeypatch.setattr(Target, "account", account)
    target = Target("demo", None, "logs")
    monkeypatch.setattr(stacks, "describe", lambda *_: {"StackStatus": "UPDATE_IN_PROGRESS"})
    with pytest.raises(ShoalError, match="is in state UPDATE_IN_PROGRESS"):
        _is_active(target, RUN)
    monkeypatch.setattr(stacks, "describe", lambda *_: None)
    assert not _is_active(target, RUN)
