from pathlib import Path

import pytest
import yaml

from infra import cost, topology
from tests.infra.variants import SHIPPED, of

BY_HAND = {"p2.xlarge": 0.90, "g3.4xlarge": 1.14, "g3.16xlarge": 4.56}


HERE = Path(__file__).parent
REFERENCE = yaml.safe_load((HERE / "reference_costs.yaml").read_text())
CASES = yaml.safe_load((HERE / "costs.yaml").read_text("utf-8"))
"""Topologies with the rows of their plan: item, quantity, unit price, `since`, and if present `at_most`, `cheapest`."""


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_the_rows_of_a_topology(case):
    spec = of(**case["fields"]) if "fields" in case else topology.load(case["shipped"], SHIPPED)
    assert costs(spec) == case["costs"]


def costs(spec):
    return {
        "rows": [
            [row.part, row.item, row.quantity, row.unit_price and round(row.unit_price, 6), row.since]
            + (["at most"] if row.at_most else [])
            + ([row.cheapest] if row.cheapest is not None else [])
            for row in cost.rows(spec)
        ],
        "by_use": [[use.item, use.price, use.unit] for use in cost.by_use(spec)],
        "hourly": round(cost.hourly(spec), 6),
        "fixed": round(cost.hourly_fixed(spec), 6),
        "unknown": cost.unknown(spec),
    }


@pytest.mark.parametrize(("name", "nodes", "seconds", "total"), REFERENCE, ids=[row[0] for row in REFERENCE])
def test_the_rows_of_the_reference_have_its_published_costs(name, nodes, seconds, total):
    spec = of(training=[{"instance_type": kind, "count": count} for kind, count in nodes.items()])
    hourly = sum(row.hourly for row in cost.rows(spec) if row.part == "training" and row.instance)
    assert hourly == pytest.approx(sum(count * BY_HAND[kind] for kind, count in nodes.items()))
    # The totals are hours, rounded to a hundredth, times the rate; this row counts one machine of two.
    counted = hourly / 2 if name == "two g3.16xlarge with 2 GPU only" else hourly
    assert round(seconds / 3600, 2) * counted == pytest.approx(total, abs=0.006)
