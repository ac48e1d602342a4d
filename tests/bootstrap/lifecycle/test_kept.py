"""Tests of finding the data bucket of a deleted stack, and the running parts of a deployment."""

from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError
from shoal_guard.sweep.sweeping import DELETED, KEPT, UNVERIFIED, FoundResource

from bootstrap.aws import stacks
from bootstrap.lifecycle import destroy_preview, fetch
from bootstrap.lifecycle.status import ClusterStatus, GroupStatus, Status
from bootstrap.training.places import managed
from bootstrap.training.places.launch import RequestedRuns
from common.errors import ShoalError
from infra import topology


def bucket(name: str, outcome: str, why: str = "") -> FoundResource:
    return FoundResource(kind="s3 bucket", identifier=name, billed=True, outcome=outcome, why=why)


@pytest.mark.parametrize(
    ("found", "meant"),
    [
        ([bucket("a", KEPT)], "a"),
        ([bucket("a", DELETED), bucket("with-runs", DELETED), bucket("b", UNVERIFIED, "denied")], "with-runs"),
        (
            [bucket("a", KEPT), bucket("b", KEPT)],
            "several data buckets of 'mine' exist: a, b; name one with --bucket",
        ),
        (
            [bucket("a", UNVERIFIED, "denied")],
            "Shoal cannot tell whether 'mine' left a data bucket: a denied, or name the bucket with --bucket",
        ),
        ([bucket("a", DELETED)], "no deployment"),
    ],
)
def test_the_kept_bucket_is_found(found: list[FoundResource], meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "describe", lambda *_: None)
    monkeypatch.setattr(fetch, "find_buckets", lambda *_: found)
    monkeypatch.setattr(fetch, "runs", lambda _, name: {"run": []} if name == "with-runs" else {})
    monkeypatch.setattr(fetch, "no_such_deployment", lambda *_: ShoalError("no deployment"))
    try:
        answer = fetch.find_data_bucket("mine", Mock())
    except ShoalError as error:
        answer = str(error)
    assert answer == meant


def test_running_lists_nodes_and_a_cluster_that_cost_money() -> None:
    def group(name: str, running: int) -> GroupStatus:
        numbers: dict[str, Any] = {"size": 2, "desired": running, "running": running, "ready": running, "statuses": {}}
        types = {"instance_types": ["g5.xlarge"], "nodes": ["g5.xlarge"] * running}
        return GroupStatus(name=name, role="train", **types, **numbers)

    cluster = ClusterStatus(identifier="j-1", state="WAITING", reason="", nodes=["m5.xlarge"] * 2, most=[])
    now = Status(name="mine", stack={}, groups=[group("fast", 2), group("slow", 0)], cluster=cluster, guard=None)
    assert destroy_preview._running(now) == ["2 g5.xlarge (fast)", "EMR cluster j-1 (WAITING, nodes: 2)"]
    assert destroy_preview._running(None) == []


def test_a_job_is_listed_although_the_bucket_with_requests_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: object) -> None:
        raise ClientError({"Error": {"Code": "NoSuchBucket"}}, "GetObject")

    at_work = [Mock(run="left", status="InProgress"), Mock(run="stopped", status="Stopping")]
    for job in at_work:
        job.configure_mock(has_ended=False, options={})
    monkeypatch.setattr(managed.ManagedPlace, "serves", lambda _: True)
    monkeypatch.setattr(managed, "jobs", lambda *_, **__: at_work)
    monkeypatch.setattr(RequestedRuns, "read", gone)
    stack: Any = {"Outputs": [{"OutputKey": topology.OUTPUT_DATA_BUCKET, "OutputValue": "data"}]}
    assert destroy_preview._trains("mine", Mock(), stack, None, []) == ["left"]
