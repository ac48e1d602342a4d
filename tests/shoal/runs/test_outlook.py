"""Tests of the cost and prediction of a run against figures computed by hand."""

import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from bootstrap.node.node_documents import Attempt, Member, NodeStatus
from infra import catalog, cost
from shoal.cli.verbs.status import describe_outlook
from shoal.runs.outlook import Spending, Stages, outlook
from tests.bootstrap.node.world import request
from tests.bootstrap.test_shell import NODE as SPOT_NODE

HOUR = 3600
VOLUME = 150 * 0.08 / 730
NODE = replace(SPOT_NODE, instance_id="i-00000001", launched=datetime.now(UTC) - timedelta(hours=2))
MEMBER = Member(instance=NODE.instance_id, address=NODE.address, gpus=1)
ATTEMPT = Attempt(number=1, token="0a1b2c3d", members=(MEMBER,), port=20_000)
RATE = cost.training_node("g5.xlarge", catalog.prices("us-east-1"))


def status(*, ends=HOUR, **more):
    """Return the status of a node, `ends` seconds before the end."""
    values = {"token": ATTEMPT.token, "phase": "run", "attempt": 1, "step": 25, "steps": 100, **more}
    return NodeStatus(ends=None if ends is None else time.time() + ends, **values)


def hours(found):
    """Return the known values of a prediction, with dollars as hours of the node."""
    dollars = {"so far": found.dollars, "at least": found.dollars_at_least, "in all": found.dollars_in_all}
    known = {name: round(each / RATE, 2) for name, each in dollars.items() if each is not None}
    left = {} if found.seconds_left is None else {"left": round(found.seconds_left / 60)}
    return {**({} if found.done is None else {"done": found.done}), **left, **known}


LOST = replace(MEMBER, instance="i-00000002")
PAID = {"so far": 2.0, "at least": 2.0}
UNKNOWN = r"progress unknown; end unknown; \$.* so far"


@pytest.mark.parametrize(
    ("state", "values", "words"),
    [
        (
            {},
            {"done": 0.25, "left": 60, **PAID, "in all": 3.0},
            r"25\.0% done; ends at .*, in 60 minutes; \$.* in total",
        ),
        ({"until": HOUR / 2}, {"done": 0.25, "left": 30, **PAID, "in all": 2.5}, r".*, in 30 minutes; \$.* in total"),
        ({"status": {"ends": None}}, {"done": 0.25, **PAID}, r"25\.0% done; end unknown; \$.* so far"),
        ({"status": {"ends": -HOUR}}, {"done": 0.25, **PAID}, r"25\.0% done; end unknown; \$.* so far"),
        ({"status": None}, PAID, UNKNOWN),
        ({"status": {"step": None}}, PAID, UNKNOWN),
        ({"status": {"attempt": 2}}, PAID, UNKNOWN),
        ({"status": {"token": "f" * 8}}, PAID, UNKNOWN),
        ({"status": {"steps": None, "ends": None}}, PAID, UNKNOWN),
        ({"lost": True}, {"done": 0.25, "left": 60, "at least": 2.0}, r".*; at least \$.*"),
        ({"region": "nowhere-1"}, {"done": 0.25, "left": 60}, ".*; cost unknown"),
        ({"nodes": ()}, {"done": 0.25, "left": 60}, ".*; cost unknown"),
    ],
)
def test_the_prediction_for_a_run(state, values, words):
    now = datetime.now(UTC)
    spending = Spending(region=state.get("region", "us-east-1"), since=now - timedelta(hours=3))
    changes = state.get("status", {})
    before = (replace(ATTEMPT, members=(MEMBER, LOST)),) if "lost" in state else ()
    expects = outlook(
        request(until=time.time() + state["until"], max_dollars=9.0) if "until" in state else request(),
        (*before, ATTEMPT),
        None if changes is None else status(**changes),
        state.get("nodes", [replace(NODE, launched=now - timedelta(hours=2))]),
        spending,
    )
    assert hours(expects) == values
    assert re.fullmatch(words, describe_outlook(expects))


def dollars(nodes, region="us-east-1"):
    """Return the cost of nodes since a training started three hours ago."""
    spending = Spending(region=region, since=datetime.now(UTC) - timedelta(hours=3))
    spending.see(nodes)
    return spending.so_far()


def test_a_replaced_node_counts_until_it_was_last_seen(monkeypatch):
    now = datetime.now(UTC)
    ago = [now - timedelta(hours=hours) for hours in range(4)]
    times = iter([ago[2], ago[1], now])
    monkeypatch.setattr("shoal.runs.outlook.datetime", SimpleNamespace(now=lambda _: next(times)))
    spending = Spending(region="us-east-1", since=ago[3])
    spending.see([replace(NODE, launched=ago[3])])
    spending.see([replace(NODE, launched=ago[1], instance_id="i-00000002")])
    assert spending.so_far() == pytest.approx(2 * (catalog.prices("us-east-1").hourly("g5.xlarge") + VOLUME), rel=1e-3)


@pytest.mark.parametrize(
    ("nodes", "hours"),
    [
        ({"g5.xlarge": 2, "g4dn.xlarge": 1}, {"g5.xlarge": 2, "g4dn.xlarge": 1}),
        ({"g5.xlarge": 9}, {"g5.xlarge": 3}),  # it ran before, and counts from the start of the training
        ({"g5.xlarge": -1}, {}),  # with a clock that is behind
    ],
)
def test_each_node_costs_from_its_launch_on(nodes, hours):
    now, prices = datetime.now(UTC), catalog.prices("us-east-1")
    there = [
        replace(NODE, instance_type=kind, launched=now - timedelta(hours=since), instance_id=f"i-0000000{number}")
        for number, (kind, since) in enumerate(nodes.items())
    ]
    by_hand = sum(count * (prices.hourly(kind) + VOLUME) for kind, count in hours.items())
    assert dollars(there) == pytest.approx(by_hand, rel=1e-3)


@pytest.mark.parametrize(("kind", "region"), [("g5.xlarge", "nowhere-1"), ("g99.xlarge", "us-east-1")])
def test_without_a_price_no_cost_is_shown(kind, region):
    assert dollars([replace(NODE, instance_type=kind)], region) is None


def test_a_stage_costs_the_dollars_since_the_previous_stage():
    spent = [1.0, 3.5, None, 4.0, 6.0]
    stages = Stages(datetime.now(UTC))
    for dollars_so_far in spent:
        stages.end("a stage", dollars_so_far)
    assert [stage["dollars"] for stage in stages.finished] == [1.0, 2.5, None, None, 2.0]
