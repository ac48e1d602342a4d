"""Tests of the costs of topologies, also against the reference's table."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra import cost, topology
from tests.infra.variants import SHIPPED, of

GPU_VOLUME = 150 * 0.08 / 730

# The reference's table: name of the experiment, nodes, seconds, total price.
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


CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("costs.yaml").read_text("utf-8"))
"""Topologies with the rows of their plan: item, quantity, unit price, `since`, and if present `at_most`, `cheapest`."""


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_the_rows_of_a_topology(case):
    spec = of(**case["fields"]) if "fields" in case else topology.load(case["shipped"], SHIPPED)
    assert costs(spec) == case["costs"]


def costs(spec: topology.Topology) -> dict[str, Any]:
    def dollars(amount: float) -> float:
        return round(amount, 6)

    return {
        "rows": [
            [row.part, row.item, row.quantity, row.unit_price and dollars(row.unit_price), row.since]
            + (["at most"] if row.at_most else [])
            + ([row.cheapest] if row.cheapest is not None else [])
            for row in cost.rows(spec)
        ],
        "by_use": [[use.item, use.price, use.unit] for use in cost.by_use(spec)],
        "hourly": dollars(cost.hourly(spec)),
        "fixed": dollars(cost.hourly_fixed(spec)),
        "unknown": cost.unknown(spec),
    }


def gpu_hourly(nodes: dict[str, int]) -> float:
    """Return the dollars per hour of a cluster's GPU machines. Retired types have their last prices."""
    spec = of(training=[{"instance_type": name, "count": count} for name, count in nodes.items()])
    return sum(row.hourly for row in cost.rows(spec) if row.part == "training" and row.instance)


@pytest.mark.parametrize(("name", "nodes", "seconds", "total"), REFERENCE, ids=[row[0] for row in REFERENCE])
def test_the_rows_of_the_reference_have_its_published_costs(name, nodes, seconds, total):
    hourly = gpu_hourly(nodes)
    assert hourly == pytest.approx(sum(count * BY_HAND[kind] for kind, count in nodes.items()))
    # The totals are hours, rounded to a hundredth, times the rate; this row counts one machine of two.
    counted = hourly / 2 if name == "two g3.16xlarge with 2 GPU only" else hourly
    assert round(seconds / 3600, 2) * counted == pytest.approx(total, abs=0.006)


@given(st.integers(1, 500), st.integers(1, 500))
def test_each_additional_node_costs_the_same(few, more):
    def price(count: int) -> float:
        return cost.hourly(of(training=[{"instance_type": "g6.xlarge", "count": count}]))

    assert price(few + more) - price(few) == pytest.approx(more * (0.8048 + GPU_VOLUME))
