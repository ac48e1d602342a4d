"""Tests of what is kept after a deletion, of running parts, and of what a deployment has cost and costs per hour."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from common import names
from common.errors import ShoalError
from shoal.aws import guard, stacks
from shoal.aws.guard import GuardReport
from shoal.backends import sagemaker
from shoal.deployments import destroy_preview, fetch
from shoal.deployments.bill import fetch_bill
from shoal.deployments.kept import kept_bucket
from shoal.deployments.removal.sweep import DELETED, KEPT, UNVERIFIED, FoundResource
from shoal.deployments.status import ClusterStatus, GroupStatus, Status
from shoal.runs.store import RequestedRuns


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
def test_the_kept_bucket_is_found(buckets, kept, monkeypatch, messages) -> None:
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


RESOURCES = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1}


def test_a_job_is_listed_although_the_bucket_with_requests_was_deleted(monkeypatch) -> None:
    at_work = [Mock(run="left", status="InProgress"), Mock(run="stopped", status="Stopping")]
    for job in at_work:
        job.configure_mock(has_ended=False, why="", description={"ResourceConfig": RESOURCES})
    monkeypatch.setattr("shoal.backends.attaching.has_managed_training", lambda _: True)
    monkeypatch.setattr(sagemaker, "jobs", lambda *_, **__: at_work)
    gone = ClientError({"Error": {"Code": "NoSuchBucket"}}, "GetObject")
    monkeypatch.setattr(RequestedRuns, "read", Mock(side_effect=gone))
    stack: Any = {"Outputs": [{"OutputKey": names.OUTPUT_DATA_BUCKET, "OutputValue": "data"}]}
    assert destroy_preview._trains("mine", Mock(), stack, None, []) == ["left"]


CREATED = datetime(2026, 1, 2, 3, tzinfo=UTC)
SETTINGS = """{"deployment": "mine", "stack": "arn", "account": "spent", "extension": "added", "max_hours": 12,
    "idle_minutes": 30, "gpu": {"g5.xlarge": 1.0, "g4dn.xlarge": 0.5}, "emr": {"m5.xlarge": 0.25},
    "standing": 0.125, "job": 4.0}"""
STACK: Any = {"CreationTime": CREATED, "Outputs": [{"OutputKey": names.OUTPUT_GUARD, "OutputValue": "guard"}]}


def report(written: datetime | None = None) -> GuardReport:
    """Return the report with an amount and an extension that were written then."""
    values = {
        names.guard_parameter("mine"): '{"spent": 3.5, "as_of": "2026-01-02T04:00:00+00:00"}',
        names.extension_parameter("mine"): "1.5",
    }
    parameters = [{"Name": name, "Value": value, "LastModifiedDate": written} for name, value in values.items()]
    client = Mock()
    client.get_function_configuration.return_value = {"Environment": {"Variables": {"SETTINGS": SETTINGS}}}
    client.get_parameters.return_value = {"Parameters": parameters if written else []}
    read = guard.read(Mock(client=lambda _: client), "mine", STACK)
    assert read is not None
    return read


@pytest.mark.parametrize(
    ("written", "spent", "hours"),
    [(None, None, 12), (CREATED - timedelta(seconds=1), None, 12), (CREATED, 3.5, 13.5)],
    ids=["nothing", "an earlier stack's", "this stack's"],
)
def test_only_what_the_stacks_own_guard_wrote_counts(written, spent, hours) -> None:
    assert (report(written).spent, report(written).ends) == (spent, CREATED + timedelta(hours=hours))


def test_an_ended_life_is_not_extended(messages) -> None:
    with messages.raises(ShoalError):
        guard.extend(Mock(), "mine", report(), 5.0)


def test_a_deployment_costs_its_running_nodes_and_at_most_its_most_expensive_ones() -> None:
    counts: dict[str, Any] = {"size": 3, "desired": 2, "running": 2, "ready": 2, "statuses": {}}
    types = ["g4dn.xlarge", "g5.xlarge"]
    group = GroupStatus(name="fast", role="train", instance_types=types, nodes=types, **counts)
    emr = ClusterStatus(identifier="j-1", state="WAITING", reason="", nodes=["m5.xlarge"], most=["m5.xlarge"] * 4)
    now = Status(name="mine", stack=STACK, groups=[group], cluster=emr, guard=report())
    assert now.rate == 0.125 + 0.5 + 1.0 + 0.25
    assert now.most == 0.125 + 3 * 1.0 + 4 * 0.25 + 4.0
