"""Tests of logs with several pages of EMR steps, of the guard's log, and of what was deleted."""

from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from bootstrap.aws.account import Account
from bootstrap.lifecycle import logs
from bootstrap.lifecycle.status import ClusterStatus, Status
from infra import topology

OUTPUTS = {topology.OUTPUT_DATA_BUCKET: "data", topology.OUTPUT_GUARD: "guard"}
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


def test_the_requested_number_of_steps_is_shown() -> None:
    every = [{"Id": f"s-{number}", "Name": "x", "Status": {"State": "COMPLETED"}} for number in range(120)]
    pages = [{"Steps": every[first : first + 50]} for first in range(0, 120, 50)]
    account = Answers(get_paginator=lambda _: Mock(paginate=lambda **_: pages))
    for newest in (1, 70, 120):
        assert len(logs.steps(account, NOW, newest=newest, tail=1)) == newest


def test_the_guards_own_lines_of_the_last_24_hours_are_shown_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 90_000.0)
    lines = ["START RequestId: x", "one", "two\n", "three", "REPORT RequestId: x"]
    events = [{"timestamp": second, "message": line} for second, line in enumerate(lines)]
    paginate = Mock(return_value=[{"events": events[:2:-1]}, {"events": events[:3]}])
    account = Answers(get_function_configuration=Mock(return_value={}), get_paginator=lambda _: Mock(paginate=paginate))
    excerpt = logs.guard(account, NOW, tail=2)
    assert excerpt is not None
    assert excerpt.lines == ["two", "three"]
    paginate.assert_called_once_with(logGroupName="/aws/lambda/guard", startTime=(90_000 - 24 * 60 * 60) * 1000)


def test_a_deleted_bucket_or_guard_has_no_logs() -> None:
    def gone(code: str) -> Mock:
        return Mock(side_effect=ClientError({"Error": {"Code": code, "Message": ""}}, "Read"))

    account = Answers(get_paginator=gone("NoSuchBucket"), get_function_configuration=gone("ResourceNotFoundException"))
    assert logs.nodes(account, NOW, tail=1) == []
    assert logs.guard(account, NOW, tail=1) is None
