"""Whether one machine is enough, and what a cluster saves where it is not."""

from dataclasses import replace

import pytest

from bootstrap.aws.cdk import TOPOLOGIES
from experiments.forecast.cluster import ClusterWork, predict_cluster
from experiments.forecast.estimate import Estimate
from experiments.forecast.one_machine import Comparison, compare
from experiments.forecast.rates import Rates
from infra import topology
from trainer.balancing.speed import TimeModel

FEW = ClusterWork(rows=20_000, raw_bytes=None, epochs=10)
OWN = Rates(
    source="a test",
    off=0.1,
    model={"model": "lstm"},
    nodes=(),
    ranks=(TimeModel(0.0, 1e-3),),
    others=TimeModel(0.0, 0.0),
    evaluation=0.0,
    loading=TimeModel(0.0, 0.0),
    around=7.0,
    checkpoint=0.0,
)


def beside(seconds: float, dollars: float, *, cluster: tuple[float, float]) -> Comparison:
    return Comparison(
        machine="one g5.xlarge, the cheapest node,",
        seconds=Estimate.exact(seconds),
        dollars=Estimate.exact(dollars),
        cluster_seconds=cluster[0],
        cluster_dollars=cluster[1],
    )


@pytest.mark.parametrize(
    ("alone", "cluster", "said"),
    [
        (
            (1800, 0.5),
            (1500, 2),
            "One machine is enough: one g5.xlarge, the cheapest node, takes 30 minutes for $0.50, ",
        ),
        ((7200, 1), (9000, 3), "One machine is enough: "),
        ((7200, 2), (3600, 5), "The cluster takes 1.0 hours less and $3.00 more: "),
        ((7200, 2), (3600, 1.5), "The cluster takes 1.0 hours less and $0.50 less: "),
        ((7200, 2), (9000, 1.5), "The cluster takes 30 minutes more and $0.50 less: "),
    ],
)
def test_it_is_enough_where_the_cluster_costs_more_and_saves_minutes(
    alone: tuple[float, float], cluster: tuple[float, float], said: str
) -> None:
    found = beside(*alone, cluster=cluster)
    assert found.sentence().startswith(said)
    assert found.enough == said.startswith("One")
    assert found.sentence().endswith(f" for ${cluster[1]:.2f}.")


def test_the_node_is_the_cheapest_of_all_and_counts_its_own_start() -> None:
    chosen = topology.load("mixed-g5-g4dn", TOPOLOGIES)
    found = compare(chosen, replace(FEW, raw_bytes=1e9), None, None)
    assert found is not None
    assert found.machine == "one g4dn.xlarge, the cheapest node,"
    alone = topology.load("embeddings-1gpu", TOPOLOGIES)  # the same node
    assert found.dollars == predict_cluster(alone, FEW).dollars
    assert found.enough
    assert found.cluster_dollars < predict_cluster(chosen, replace(FEW, raw_bytes=1e9)).dollars.middle


def test_a_machine_of_ones_own_costs_nothing_and_takes_what_its_rates_say() -> None:
    found = compare(topology.load("h100-8", TOPOLOGIES), FEW, None, OWN)
    assert found is not None
    assert found.dollars.high == 0
    assert found.seconds.middle == pytest.approx(7 + 10 * 1e-3 * FEW.training.rows)
    assert found.content()["enough"]


def test_a_topology_of_one_node_is_compared_with_no_other() -> None:
    assert compare(topology.load("h100-8", TOPOLOGIES), FEW, None, None) is None
    assert compare(topology.load("reference-emr-2", TOPOLOGIES), FEW, None, OWN) is None
