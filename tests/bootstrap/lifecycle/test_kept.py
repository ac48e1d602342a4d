"""Tests of finding the data bucket of a deleted stack, of its cost, and of the running parts of a deployment."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError
from shoal_guard.sweep.sweeping import DELETED, KEPT, UNVERIFIED, FoundResource

from bootstrap.aws import stacks
from bootstrap.lifecycle import destroy_preview, fetch
from bootstrap.lifecycle.bill import fetch_bill
from bootstrap.lifecycle.kept import kept_bucket
from bootstrap.lifecycle.status import ClusterStatus, GroupStatus, Status
from bootstrap.training.places import managed
from bootstrap.training.places.launch import RequestedRuns
from common.errors import ShoalError
from infra import topology
from tests.messages import Messages


def bucket(name: str, outcome: str, why: str = "") -> FoundResource:
    return FoundResource(kind="s3 bucket", identifier=name, billed=True, outcome=outcome, why=why)


@pytest.mark.parametrize(
    ("buckets", "kept"),
    [
        ([bucket("a", KEPT)], "a"),
        ([bucket("a", DELETED), bucket("with-runs", DELETED), bucket("b", UNVERIFIED, "denied")], "with-runs"),
        ([bucket("a", KEPT), bucket("b", KEPT)], None),
        ([bucket("a", UNVERIFIED, "denied")], None),
        ([bucket("a", DELETED)], None),
    ],
    ids=["kept", "with runs", "two kept", "unverified", "deleted"],
)
def test_the_kept_bucket_is_found(
    buckets: list[FoundResource], kept: str | None, monkeypatch: pytest.MonkeyPatch, messages: Messages
) -> None:
    monkeypatch.setattr(stacks, "describe", lambda *_: None)
    monkeypatch.setattr(fetch, "find_buckets", lambda *_: buckets)
    monkeypatch.setattr(fetch, "runs", lambda _, name: {"run": []} if name == "with-runs" else {})
    monkeypatch.setattr(fetch, "no_such_deployment", lambda *_: ShoalError("no deployment"))
    if kept:
        assert fetch.find_data_bucket("mine", Mock()) == kept
    else:
        with messages.raises(ShoalError):
            fetch.find_data_bucket("mine", Mock())


def test_a_kept_bucket_costs_its_gibibytes_times_the_monthly_price_of_s3() -> None:
    versions = [{"Size": 3 << 30}, {"Size": 1 << 29}]
    account = Mock(region="us-east-1", items=Mock(return_value=versions))
    measured = kept_bucket(account, "mine-data", "it holds 1 run")
    assert (measured.objects, measured.bytes, measured.why) == (2, 7 << 29, "it holds 1 run")
    assert measured.monthly == pytest.approx(3.5 * 0.023)


def test_a_bill_adds_up_the_months_of_each_service_and_ends_after_today() -> None:
    def month(**services: str) -> dict[str, Any]:
        return {
            "Groups": [
                {"Keys": [name], "Metrics": {"UnblendedCost": {"Amount": amount}}} for name, amount in services.items()
            ]
        }

    answer = {"ResultsByTime": [month(EC2="1.25", S3="0.5"), month(EC2="2")]}
    client = Mock(get_cost_and_usage=Mock(return_value=answer))
    since = datetime.now(UTC) - timedelta(days=40)
    bill = fetch_bill(Mock(client=Mock(return_value=client)), "mine", since)
    assert (bill.services, bill.total, bill.why) == ({"EC2": 3.25, "S3": 0.5}, 3.75, "")
    period = client.get_cost_and_usage.call_args.kwargs["TimePeriod"]
    assert date.fromisoformat(period["Start"]) == since.date()
    assert date.fromisoformat(period["End"]) > since.date() + timedelta(days=40)


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
    at_work = [Mock(run="left", status="InProgress"), Mock(run="stopped", status="Stopping")]
    for job in at_work:
        job.configure_mock(has_ended=False, options={})
    monkeypatch.setattr(managed.ManagedPlace, "serves", lambda _: True)
    monkeypatch.setattr(managed, "jobs", lambda *_, **__: at_work)
    gone = ClientError({"Error": {"Code": "NoSuchBucket"}}, "GetObject")
    monkeypatch.setattr(RequestedRuns, "read", Mock(side_effect=gone))
    stack: Any = {"Outputs": [{"OutputKey": topology.OUTPUT_DATA_BUCKET, "OutputValue": "data"}]}
    assert destroy_preview._trains("mine", Mock(), stack, None, []) == ["left"]
