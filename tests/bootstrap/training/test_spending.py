"""Dollars of nodes, against sums done by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from bootstrap.nodes.fleet import GpuNode
from bootstrap.training.spending import Spending, Stages
from infra import catalog

HOUR = timedelta(hours=1)
VOLUME = 150 * 0.08 / 730


def node(instance_type: str, launched: datetime, name: str = "i-00000001") -> GpuNode:
    return GpuNode(
        instance_id=name,
        group="g",
        instance_type=instance_type,
        market="spot",
        zone="us-east-1a",
        address="10.0.0.1",
        gpus=1,
        launched=launched,
    )


def dollars(nodes: list[GpuNode], *, region: str, since: datetime) -> float | None:
    spending = Spending(region=region, since=since)
    spending.see(nodes)
    return spending.so_far()


def test_a_node_that_was_replaced_counts_until_it_was_seen_last(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    first, second = node("g5.xlarge", now - 3 * HOUR), node("g5.xlarge", now - HOUR, "i-00000002")
    clock = FakeClock([now - 2 * HOUR, now - HOUR, now])
    monkeypatch.setattr("bootstrap.training.spending.datetime", clock)
    spending = Spending(region="us-east-1", since=now - 3 * HOUR)
    spending.see([first])
    spending.see([second])
    assert spending.so_far() == pytest.approx(2 * (catalog.prices("us-east-1").hourly("g5.xlarge") + VOLUME), rel=1e-3)


class FakeClock:
    """Says these times, one after the other."""

    def __init__(self, times: list[datetime]) -> None:
        self._times = iter(times)

    def now(self, _zone: object) -> datetime:
        return next(self._times)


@pytest.mark.parametrize(
    ("nodes", "hours"),
    [
        ({"g5.xlarge": 2, "g4dn.xlarge": 1}, {"g5.xlarge": 2, "g4dn.xlarge": 1}),
        ({"g5.xlarge": 9}, {"g5.xlarge": 3}),  # it ran before, and counts from the start of the training
        ({"g5.xlarge": -1}, {}),  # by a clock that is behind
    ],
)
def test_each_node_is_paid_for_from_its_launch(nodes: dict[str, int], hours: dict[str, int]) -> None:
    now, prices = datetime.now(UTC), catalog.prices("us-east-1")
    there = [node(kind, now - since * HOUR, f"i-0000000{number}") for number, (kind, since) in enumerate(nodes.items())]
    by_hand = sum(count * (prices.hourly(kind) + VOLUME) for kind, count in hours.items())
    assert dollars(there, region="us-east-1", since=now - 3 * HOUR) == pytest.approx(by_hand, rel=1e-3)


@pytest.mark.parametrize(("instance_type", "region"), [("g5.xlarge", "nowhere-1"), ("g99.xlarge", "us-east-1")])
def test_without_a_price_no_cost_is_shown(instance_type: str, region: str) -> None:
    now = datetime.now(UTC)
    assert dollars([node(instance_type, now)], region=region, since=now) is None


def test_a_stage_costs_what_was_spent_since_the_one_before() -> None:
    spent = [1.0, 3.5, None, 4.0, 6.0]
    stages = Stages(datetime.now(UTC), iter(spent).__next__)
    for _ in spent:
        stages.end("a stage")
    assert [stage["dollars"] for stage in stages.found] == [1.0, 2.5, None, None, 2.0]
