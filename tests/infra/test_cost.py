"""Prices are equal to sums that were computed by hand."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import cost, topology
from tests.infra.variants import SHIPPED, of

EMR_VOLUME = (30 + 64) * 0.08 / 730
GPU_VOLUME = 150 * 0.08 / 730

REFERENCE_DAY = datetime.date(2019, 5, 31)
# The reference's table: what it calls the experiment, the nodes that ran, its seconds, its total price.
REFERENCE = [
    ("single g3.4xlarge", {"g3.4xlarge": 1}, 35_920, 11.38),
    ("single p2.xlarge", {"p2.xlarge": 1}, 63_923, 15.98),
    ("single g3.16xlarge", {"g3.16xlarge": 1}, 13_156, 16.64),
    ("two g3.4xlarge", {"g3.4xlarge": 2}, 24_316, 15.39),
    ("two g3.16xlarge with 2 GPU only", {"g3.16xlarge": 2}, 15_820, 20.02),
    ("four g3.4xlarge", {"g3.4xlarge": 4}, 13_973, 17.69),
    ("two g3.16xlarge", {"g3.16xlarge": 2}, 9_531, 24.17),
    ("three g3.4xlarge + one p2.xlarge", {"g3.4xlarge": 3, "p2.xlarge": 1}, 24_256, 29.12),
    ("three g3.4xlarge + one p2.xlarge, dynamic", {"g3.4xlarge": 3, "p2.xlarge": 1}, 23_007, 27.60),
    ("one g3.4xlarge + one p2.xlarge", {"g3.4xlarge": 1, "p2.xlarge": 1}, 39_382, 22.32),
    ("one g3.4xlarge + one p2.xlarge, dynamic", {"g3.4xlarge": 1, "p2.xlarge": 1}, 37_503, 21.26),
]
BY_HAND = {"p2.xlarge": 0.90, "g3.4xlarge": 1.14, "g3.16xlarge": 4.56}


def test_the_demo_costs_what_its_parts_cost() -> None:
    cluster = 2 * (0.192 + 0.048) + 2 * EMR_VOLUME
    nodes = 1.006 + 0.526 + 2 * GPU_VOLUME
    assert cost.hourly(topology.load("demo", SHIPPED)) == pytest.approx(cluster + nodes)


def test_the_reference_cluster_costs_what_its_parts_cost() -> None:
    cluster = 9 * (0.200 + 0.060) + 9 * EMR_VOLUME
    nodes = 3 * 1.14 + 0.90 + 4 * GPU_VOLUME
    assert cost.hourly(topology.load("reference-3g3-1p2", SHIPPED)) == pytest.approx(cluster + nodes)


def gpu_hourly(nodes: dict[str, int]) -> float:
    """What the GPU machines of a cluster cost an hour by the reference's own price list."""
    spec = of(training=[{"instance_type": name, "count": count} for name, count in nodes.items()])
    return sum(row.hourly for row in cost.rows(spec, on=REFERENCE_DAY) if row.part == "training" and row.instance)


@pytest.mark.parametrize(("name", "nodes", "seconds", "total"), REFERENCE, ids=[row[0] for row in REFERENCE])
def test_the_rows_of_the_reference_cost_what_it_says(
    name: str, nodes: dict[str, int], seconds: int, total: float
) -> None:
    hourly = gpu_hourly(nodes)
    assert hourly == pytest.approx(sum(count * BY_HAND[kind] for kind, count in nodes.items()))
    # Its totals are hours, rounded to a hundredth, times the rate; this row priced one machine where two ran.
    counted = hourly / 2 if name == "two g3.16xlarge with 2 GPU only" else hourly
    assert round(seconds / 3600, 2) * counted == pytest.approx(total, abs=0.006)


def test_a_cluster_of_one_node_is_priced_as_one() -> None:
    found = cost.hourly(of(preprocessing={"primary": {"instance_type": "m5.xlarge"}}))
    assert found == pytest.approx(0.192 + 0.048 + EMR_VOLUME)


def test_spot_is_priced_at_most_at_the_price_on_demand() -> None:
    nodes = {"instance_type": "m5.xlarge"}
    groups = {"primary": nodes, "core": {**nodes, "count": 3}, "task": {**nodes, "count": 5, "market": "spot"}}
    found = [row for row in cost.rows(of(preprocessing=groups)) if row.instance]
    assert [(row.item, row.quantity, row.at_most) for row in found] == [
        ("primary m5.xlarge", 1, False),
        ("core m5.xlarge", 3, False),
        ("task m5.xlarge", 5, True),
    ]
    assert {row.unit_price for row in found} == {0.192}


def test_managed_scaling_is_priced_as_it_starts_and_as_it_may_become() -> None:
    nodes = {"instance_type": "m5.xlarge"}
    groups = {"primary": nodes, "core": {**nodes, "count": 3}, "task": {"instance_type": "m5.2xlarge", "count": 1}}
    fixed, scaling = of(preprocessing=groups), of(preprocessing={**groups, "scaling": {"maximum": 10}})
    assert cost.hourly(scaling) == cost.hourly(fixed) == cost.hourly_at_maximum(fixed)
    assert cost.hourly_at_maximum(scaling) - cost.hourly(scaling) == pytest.approx(6 * (0.384 + 0.096 + EMR_VOLUME))


GIVEN = {"vpc": "vpc-0a1b2c3d", "subnet": "subnet-0a1b2c3d"}
NAT = {"NAT gateway": 0.045, "public address of the NAT gateway": 0.005}


@pytest.mark.parametrize(
    ("network", "costs", "more_with_shell"),
    [
        ({}, {}, 0.02),
        ({"shell": True}, {"interface endpoint": 0.02}, 0),
        ({"egress": "nat"}, NAT, 0),
        ({"egress": "nat", "shell": True}, NAT, 0),
        (GIVEN, {}, 0),
        ({**GIVEN, "shell": True}, {}, 0),
    ],
)
def test_a_network_costs_its_way_out_and_a_shell_only_where_it_is_no_other(
    network: dict[str, object], costs: dict[str, float], more_with_shell: float
) -> None:
    found = of(training=[{"instance_type": "g5.xlarge", "count": 1}], zone="us-east-1b", network=network)
    assert {row.item: row.hourly for row in cost.rows(found) if row.part == "network"} == costs
    assert cost.hourly_fixed(found) == pytest.approx(sum(costs.values()))
    assert cost.hourly_of_shell(found) == pytest.approx(more_with_shell)


def test_before_a_training_the_cluster_the_network_and_groups_that_start_at_once_are_paid_for() -> None:
    groups = [
        {"name": "late", "instance_type": "g5.xlarge", "count": 2},
        {"name": "early", "instance_type": "g4dn.xlarge", "count": 1, "start": "deploy"},
    ]
    found = of(preprocessing={"primary": {"instance_type": "m5.xlarge"}}, training=groups)
    cluster = 0.192 + 0.048 + EMR_VOLUME
    before = sum(row.hourly for row in cost.rows(found) if row.since != "train")
    assert before == pytest.approx(cluster + 0.526 + GPU_VOLUME)
    assert cost.hourly_fixed(found) == 0


def test_a_capacity_block_is_paid_for_in_advance() -> None:
    block = {
        "instance_type": "p5.48xlarge",
        "count": 2,
        "market": "capacity-block",
        "reservation": "cr-0a1b2c3d4e5f60718",
    }
    found = cost.rows(of(zone="us-east-1b", training=[block], share="efs"))
    items = {row.item: row.hourly for row in found if row.part == "training"}
    assert items["p5.48xlarge (a Capacity Block, paid in advance: at most)"] == 2 * 55.04


def test_readers_are_a_part_of_their_own_with_their_volumes() -> None:
    groups = [
        {"instance_type": "g4dn.xlarge", "count": 1},
        {"role": "read", "instance_type": "m5.xlarge", "count": 2, "market": "spot"},
    ]
    found = [row for row in cost.rows(of(training=groups, share="nfs")) if row.part == cost.READING]
    assert [(row.item, row.quantity, row.since, row.at_most) for row in found] == [
        ("m5.xlarge", 2, "train", True),
        ("volumes of 150 GiB", 2, "train", False),
    ]
    assert sum(row.hourly for row in found) == pytest.approx(2 * (0.192 + GPU_VOLUME))


def test_what_is_paid_by_use_has_its_unit_price() -> None:
    nodes = [{"instance_type": "g5.xlarge", "count": 2}]
    found = cost.by_use(of(training=nodes, share="efs", network={"egress": "nat"}))
    assert [(use.item, use.price, use.unit) for use in found] == [
        ("S3, what is kept", 0.023, "GiB a month"),
        ("EFS, what is kept", 0.30, "GiB a month"),
        ("EFS, what is read", 0.03, "GiB"),
        ("EFS, what is written", 0.06, "GiB"),
        ("NAT gateway, what passes", 0.045, "GiB"),
    ]


def test_what_has_no_price_is_named_and_the_rest_is_the_least_that_is_paid() -> None:
    spec = of(
        region="eu-west-1",
        preprocessing={"primary": {"instance_type": "m5.xlarge"}},
        training=[{"instance_type": "g5.xlarge", "count": 2}],
    )
    volumes = ["volumes of 94 GiB", "volumes of 150 GiB"]
    assert cost.unknown(spec) == ["primary m5.xlarge", "EMR on m5.xlarge", *volumes]
    assert cost.hourly(spec) == cost.hourly_at_maximum(spec) == 2 * 1.123
    assert {use.price for use in cost.by_use(spec)} == {None}
    assert cost.unknown(of(training=[{"instance_type": "g5.xlarge", "count": 2}])) == []


@given(st.integers(1, 500), st.integers(1, 500))
def test_a_node_more_costs_the_same_whatever_there_is(few: int, more: int) -> None:
    def price(count: int) -> float:
        return cost.hourly(of(training=[{"instance_type": "g6.xlarge", "count": count}]))

    assert price(few + more) - price(few) == pytest.approx(more * (0.8048 + GPU_VOLUME))
