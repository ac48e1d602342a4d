"""What is to be expected of a run, against figures made by hand; what nobody can tell is None."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bootstrap.agent.documents import RunRequest
from bootstrap.agent.node_documents import Attempt, Member, NodeStatus
from bootstrap.cli.status import describe_outlook
from bootstrap.nodes.fleet import GpuNode
from bootstrap.training.outlook import Outlook, first_told, outlook
from bootstrap.training.spending import Spending
from infra import catalog, cost
from tests.bootstrap.agent.world import request

HOUR = 3600
NODE = GpuNode(
    instance_id="i-00000001",
    group="g",
    instance_type="g5.xlarge",
    market="spot",
    zone="us-east-1a",
    address="10.0.0.1",
    gpus=1,
    launched=datetime.now(UTC) - timedelta(hours=2),
)
ATTEMPT = Attempt(
    number=1, token="0a1b2c3d", members=(Member(instance=NODE.instance_id, address=NODE.address, gpus=1),), port=20_000
)
RATE = cost.training_node("g5.xlarge", catalog.prices("us-east-1"))


def told(**more: Any) -> NodeStatus:
    values = {"step": 25, "steps": 100, "ends": time.time() + HOUR, **more}
    return NodeStatus(token=ATTEMPT.token, phase="run", attempt=1, **values)


def expected(
    status: NodeStatus | None,
    *,
    asked: RunRequest | None = None,
    attempts: tuple[Attempt, ...] = (ATTEMPT,),
    nodes: tuple[GpuNode, ...] | None = None,
    region: str = "us-east-1",
) -> Outlook:
    spending = Spending(region=region, since=datetime.now(UTC) - timedelta(hours=3))
    if nodes is None:
        nodes = (replace(NODE, launched=datetime.now(UTC) - timedelta(hours=2)),)
    return outlook(asked or request(), attempts, status, nodes, spending)


def test_dollars_in_all_are_those_so_far_and_those_of_the_time_that_is_left() -> None:
    found = expected(told())
    assert found.done == 0.25
    assert found.seconds_left == pytest.approx(HOUR, abs=5)
    assert found.dollars == found.dollars_at_least == pytest.approx(2 * RATE, rel=0.01)
    assert found.dollars_in_all == pytest.approx(3 * RATE, rel=0.01)


def test_a_run_that_is_to_stop_for_its_costs_ends_then() -> None:
    found = expected(told(), asked=request(until=time.time() + 600.0, max_dollars=9.0))
    assert found.seconds_left == pytest.approx(600, abs=5)


@pytest.mark.parametrize("ends", [None, time.time() - HOUR], ids=["unknown", "over"])
def test_an_end_that_is_not_known_or_is_over_is_none(ends: float | None) -> None:
    found = expected(told(ends=ends))
    assert (found.done, found.ends, found.seconds_left, found.dollars_in_all) == (0.25, None, None, None)
    assert found.dollars is not None
    assert "unknown when it ends" in describe_outlook(found)


@pytest.mark.parametrize("status", [None, told(step=None), replace(told(), attempt=2), replace(told(), token="f" * 8)])
def test_what_was_told_of_another_attempt_or_nothing_tells_nothing(status: NodeStatus | None) -> None:
    found = expected(status)
    assert (found.done, found.ends) == (None, None)
    assert describe_outlook(found).startswith("unknown how much is done; unknown when it ends; $")


def test_a_run_without_an_end_has_no_share_that_is_done() -> None:
    assert expected(told(steps=None, ends=None)).done is None


def test_what_nodes_that_have_ended_have_cost_is_not_known() -> None:
    lost = replace(ATTEMPT.members[0], instance="i-00000002")
    before = replace(ATTEMPT, members=(*ATTEMPT.members, lost))
    found = expected(told(), attempts=(before, ATTEMPT))
    assert (found.dollars, found.dollars_in_all) == (None, None)
    assert found.dollars_at_least == pytest.approx(2 * RATE, rel=0.01)
    assert "at least $" in describe_outlook(found)


def test_without_prices_and_without_nodes_no_dollars_are_known() -> None:
    for found in (expected(told(), region="nowhere-1"), expected(told(), nodes=())):
        assert (found.dollars, found.dollars_at_least, found.dollars_in_all) == (None, None, None)
        assert describe_outlook(found).endswith("unknown what it has cost")


def test_the_first_node_of_the_latest_attempt_tells_of_the_record() -> None:
    assert first_told((ATTEMPT,), {NODE.instance_id: (status := told())}) is status
    assert first_told((ATTEMPT,), {NODE.instance_id: "it cannot be read"}) is None
    assert first_told((ATTEMPT,), {}) is None
    assert first_told((), {NODE.instance_id: status}) is None
