"""Prices, against sums done by hand."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import cost, topology

SHIPPED = Path(__file__).resolve().parents[2] / "topologies"


def of(**fields: object) -> topology.Topology:
    return topology.Topology.model_validate({"name": "mine", "description": "x", **fields})


def test_the_demo_costs_what_its_parts_cost() -> None:
    cluster = 2 * (0.192 + 0.048) + 2 * (30 + 64) * 0.08 / 730
    nodes = 1.006 + 0.526 + 2 * 150 * 0.08 / 730
    endpoints = 3 * 0.01
    assert cost.hourly(topology.load("demo", SHIPPED)) == pytest.approx(cluster + nodes + endpoints)


def test_the_reference_cluster_costs_what_its_parts_cost() -> None:
    cluster = 9 * (0.200 + 0.060) + 9 * (30 + 64) * 0.08 / 730
    nodes = 3 * 1.14 + 0.90 + 4 * 150 * 0.08 / 730
    endpoints = 3 * 0.01
    assert cost.hourly(topology.load("reference-3g3-1p2", SHIPPED)) == pytest.approx(cluster + nodes + endpoints)


def test_preprocessing_alone_has_the_endpoints_of_systems_manager_too() -> None:
    nodes = {"instance_type": "m5.xlarge"}
    found = cost.rows(of(preprocessing={"primary": nodes, "core": {**nodes, "count": 3}}))
    assert {row.part for row in found} == {"preprocessing", "network"}
    assert [row.quantity for row in found] == [1, 1, 3, 3, 4, 3]


@given(st.integers(1, 500), st.integers(1, 500))
def test_a_node_more_costs_the_same_whatever_there_is(few: int, more: int) -> None:
    def price(count: int) -> float:
        return cost.hourly(of(training=[{"instance_type": "g6.xlarge", "count": count}]))

    node = 0.8048 + 150 * 0.08 / 730
    assert price(few + more) - price(few) == pytest.approx(more * node)
