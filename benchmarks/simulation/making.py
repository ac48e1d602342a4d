"""Clusters to simulate: GPUs whose speed is the catalogue's, or ranks that were measured.

What measured ranks need besides computing contains their waits, and the sum of their gradients. Do not give them jitter
or an all-reduce on top of that.
"""

from collections.abc import Sequence

from benchmarks.simulation.cluster import Cluster, Troubles
from experiments.forecast.communication import WHOLE_BYTES, Links, gradient_bytes
from experiments.forecast.gpu_rates import REFERENCE_OPERATIONS, rate_by_catalogue
from experiments.forecast.nodes import STEP_SECONDS
from experiments.forecast.rates import Rates
from infra import catalog
from trainer.balancing.speed import TimeModel


def cluster_of_nodes(
    instance_types: Sequence[str], troubles: Troubles, *, global_batch: int, gradients: float | None, overlapping: bool
) -> Cluster:
    """The cluster of these nodes, which have GPUs. `gradients`: the bytes that ranks add up in a step; None: those of
    the reference's model, whole where the sum overlaps with computing, as `--exchange ddp` has it.

    Raises TopologyError for an unknown instance type.
    """
    lines: list[TimeModel] = []
    for name in instance_types:
        gpu = catalog.find(name).gpu
        assert gpu is not None
        lines += [rate_by_catalogue(gpu, REFERENCE_OPERATIONS).line] * gpu.count
    links = Links(
        nodes=len(instance_types),
        ranks=len(lines),
        gbits=min(catalog.find(name).network for name in instance_types),
    )
    size = gradients or (WHOLE_BYTES if overlapping else gradient_bytes(global_batch))
    return Cluster(
        lines=lines,
        all_reduce=links.all_reduce_seconds(size),
        overlapping=overlapping,
        others=TimeModel(STEP_SECONDS, 0.0),
        troubles=troubles,
    )


def cluster_of_rates(rates: Rates, troubles: Troubles) -> Cluster:
    """The cluster of the ranks that were measured."""
    return Cluster(lines=rates.ranks, others=rates.others, troubles=troubles)
