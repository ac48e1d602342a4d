"""Tests of logs with several pages of EMR steps, and after the deletion of parts of the deployment."""

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.aws.account import Account
from bootstrap.lifecycle import logs
from bootstrap.lifecycle.status import ClusterStatus, Status
from infra import topology

ON_A_PAGE = 50


class Pages(Account):
    """Account with a cluster of 120 steps, newest first."""

    def pages(self, *_: Any, **__: Any) -> Iterator[dict[str, Any]]:
        steps = [{"Id": f"s-{number}", "Name": "x", "Status": {"State": "COMPLETED"}} for number in range(120)]
        for first in range(0, len(steps), ON_A_PAGE):
            yield {"Steps": steps[first : first + ON_A_PAGE]}

    def client(self, *_: Any) -> Any:
        return self

    def list_steps(self, **_: Any) -> dict[str, Any]:
        return next(self.pages("emr", "list_steps"))


class Deleted(Account):
    """Account in which everything was deleted."""

    def client(self, *_: Any) -> Any:
        return self

    def get_paginator(self, operation: str) -> Any:
        raise ClientError({"Error": {"Code": "NoSuchBucket", "Message": ""}}, operation)

    def get_function_configuration(self, **_: Any) -> Any:
        raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}}, "GetFunctionConfiguration")


def status(stack: Mapping[str, Any], cluster: ClusterStatus | None = None) -> Status:
    return Status(name="mine", stack=stack, groups=[], cluster=cluster, guard=None)


def test_the_requested_number_of_steps_is_shown() -> None:
    now = status({}, ClusterStatus(identifier="j-1", state="WAITING", reason="", nodes=[], most=[]))
    for newest in (1, 70, 120):
        assert len(logs.steps(Pages(), now, newest=newest, tail=1)) == newest


def test_a_deleted_bucket_or_guard_has_no_logs() -> None:
    outputs = {topology.OUTPUT_DATA_BUCKET: "data", topology.OUTPUT_GUARD: "guard"}
    now = status({"Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]})
    assert logs.nodes(Deleted(), now, tail=1) == []
    assert logs.guard(Deleted(), now, tail=1) is None
