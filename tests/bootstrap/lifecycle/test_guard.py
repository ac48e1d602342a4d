"""Tests of the guard's report: what a deployment has spent, when it ends, and what it costs per hour."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from bootstrap.lifecycle import guard
from bootstrap.lifecycle.guard import GuardReport
from bootstrap.lifecycle.status import ClusterStatus, GroupStatus, Status
from common.errors import ShoalError
from infra import topology
from tests.messages import Messages

CREATED = datetime(2026, 1, 2, 3, tzinfo=UTC)
SETTINGS = """{"deployment": "mine", "stack": "arn", "account": "spent", "extension": "added", "max_hours": 12,
    "idle_minutes": 30, "gpu": {"g5.xlarge": 1.0, "g4dn.xlarge": 0.5}, "emr": {"m5.xlarge": 0.25},
    "standing": 0.125, "job": 4.0}"""
STACK: Any = {"CreationTime": CREATED, "Outputs": [{"OutputKey": topology.OUTPUT_GUARD, "OutputValue": "guard"}]}


def report(written: datetime | None = None) -> GuardReport:
    """Return the report with an amount and an extension that were written then."""
    values = {
        topology.guard_parameter("mine"): '{"spent": 3.5, "as_of": "2026-01-02T04:00:00+00:00"}',
        topology.extension_parameter("mine"): "1.5",
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
def test_only_what_the_stacks_own_guard_wrote_counts(
    written: datetime | None, spent: float | None, hours: float
) -> None:
    assert (report(written).spent, report(written).ends) == (spent, CREATED + timedelta(hours=hours))


def test_an_ended_life_is_not_extended(messages: Messages) -> None:
    with messages.raises(ShoalError):
        guard.extend(Mock(), "mine", report(), 5.0)


def test_a_deployment_costs_its_running_nodes_and_at_most_its_dearest_ones() -> None:
    counts: dict[str, Any] = {"size": 3, "desired": 2, "running": 2, "ready": 2, "statuses": {}}
    types = ["g4dn.xlarge", "g5.xlarge"]
    group = GroupStatus(name="fast", role="train", instance_types=types, nodes=types, **counts)
    emr = ClusterStatus(identifier="j-1", state="WAITING", reason="", nodes=["m5.xlarge"], most=["m5.xlarge"] * 4)
    now = Status(name="mine", stack=STACK, groups=[group], cluster=emr, guard=report())
    assert now.rate == 0.125 + 0.5 + 1.0 + 0.25
    assert now.most == 0.125 + 3 * 1.0 + 4 * 0.25 + 4.0
