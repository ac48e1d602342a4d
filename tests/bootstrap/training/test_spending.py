"""Dollars of nodes, against sums done by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from bootstrap.nodes.fleet import GpuNode
from bootstrap.training.spending import Spending, Stages
from infra import catalog

HOUR = timedelta(hours=1)
VOLUME = 150 * 0.08 / 730


def node(instance_type: str, launched: datetime) -> GpuNode:
    return GpuNode(
        instance_id="i-00000001",
        group="g",
        instance_type=instance_type,
        market="spot",
        zone="us-east-1a",
        address="10.0.0.1",
        gpus=1,
        launched=launched,
    )


def test_each_node_is_paid_for_from_its_launch() -> None:
    now = datetime.now(UTC)
    nodes = [node("g5.xlarge", now - 2 * HOUR), node("g4dn.xlarge", now - HOUR)]
    spent = Spending(nodes, region="us-east-1", since=now - 3 * HOUR).so_far()
    prices = catalog.prices("us-east-1")
    by_hand = 2 * (prices.hourly("g5.xlarge") + VOLUME) + prices.hourly("g4dn.xlarge") + VOLUME
    assert spent == pytest.approx(by_hand, rel=1e-3)


def test_a_node_that_ran_before_counts_from_the_start_of_the_training() -> None:
    now = datetime.now(UTC)
    spent = Spending([node("g5.xlarge", now - 9 * HOUR)], region="us-east-1", since=now - HOUR).so_far()
    assert spent == pytest.approx(catalog.prices("us-east-1").hourly("g5.xlarge") + VOLUME, rel=1e-3)


def test_a_clock_that_is_behind_makes_no_negative_cost() -> None:
    now = datetime.now(UTC)
    assert Spending([node("g5.xlarge", now + HOUR)], region="us-east-1", since=now).so_far() == 0


@pytest.mark.parametrize(("instance_type", "region"), [("g5.xlarge", "nowhere-1"), ("g99.xlarge", "us-east-1")])
def test_without_a_price_no_cost_is_shown(instance_type: str, region: str) -> None:
    now = datetime.now(UTC)
    assert Spending([node(instance_type, now)], region=region, since=now).so_far() is None


def test_a_stage_costs_what_was_spent_since_the_one_before() -> None:
    spent = [1.0, 3.5, None, 4.0, 6.0]
    stages = Stages(datetime.now(UTC), iter(spent).__next__)
    for _ in spent:
        stages.end("a stage")
    assert [stage["dollars"] for stage in stages.found] == [1.0, 2.5, None, None, 2.0]
