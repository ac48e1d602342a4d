"""What a training on GPU nodes takes: their start, the copy of the dataset, and the training itself.

Rates that were measured on such nodes count before those of the catalogue. Do not take them for other GPUs, nor for as
many GPUs in other nodes: what a step takes besides computing is the sum over the ranks, through the nodes' network.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from common.errors import ExperimentError
from experiments.forecast.communication import Links
from experiments.forecast.estimate import Estimate
from experiments.forecast.gpu_rates import REFERENCE_MODEL, GpuModel
from experiments.forecast.rates import Node, Rates
from experiments.forecast.training import TrainingWork, predict_training
from infra import catalog
from infra.topology import Topology
from trainer.balancing.split import equal_finish_split, finish_time
from trainer.order import steps_per_epoch

NODES_START = Estimate(3 * 60, 5 * 60, 10 * 60)
"""Seconds from the request for GPU nodes to the first command on them; not measured."""
STEP_SECONDS = 0.001
"""What a step takes besides computing and the sum over the ranks: the host's own work. An assumption."""
_COPY_MB = 100.0
"""MB a second at which a dataset comes from S3 to a share, or to a node."""
_EVALUATION = 1 / 3
"""Time of evaluating a row to that of learning from it: no backward pass."""


COPY = "copy the data"


@dataclass(frozen=True, kw_only=True)
class NodeStage:
    """A part of a training on nodes, which follows the one before."""

    name: str
    """As launch.json names it (bootstrap/training/remote.py)."""
    seconds: Estimate
    basis: str
    """What the time follows from, for the user."""


def nodes_of(topology: Topology) -> tuple[Node, ...]:
    """The GPU nodes of a topology when all of its groups are scaled up; without groups the machines of a job."""
    if (jobs := topology.managed) and not topology.training:
        gpu = catalog.find(jobs.ec2_type).gpu
        return (Node(jobs.ec2_type, gpu.count if gpu else 1),) * jobs.count
    return tuple(
        Node(group.instance_type, group.gpus, group.efa) for group in topology.trainers for _ in range(group.count)
    )


def slowest_gbits(nodes: Sequence[Node]) -> float:
    """Gbit/s of the slowest node's network: TCP uses one of its network cards, EFA all that carry it."""
    types = [(catalog.find(node.instance_type), node.efa) for node in nodes]
    return min(kind.efa.network if efa and kind.efa else kind.network for kind, efa in types)


def predict_nodes(
    nodes: Sequence[Node],
    work: TrainingWork,
    *,
    shared: bool,
    model: GpuModel = REFERENCE_MODEL,
    rates: Rates | None = None,
) -> tuple[NodeStage, ...]:
    """The stages of a training on these nodes, which have a `shared` folder or one each.

    `model`: counts where no `rates` are given. Raises ExperimentError for rates that were
    not measured on such nodes, and TopologyError for an unknown instance type.
    """
    if rates is None:
        trained, basis = _by_catalogue(nodes, work, model)
    else:
        _require_measured_on(nodes, rates)
        trained, basis = Estimate.about(predict_training(work, rates).all, rates.off), rates.source
    copies = 2 if shared else 1  # to the share, and from there; without a share to all nodes at once
    seconds = copies * work.row_bytes * work.every_row / (_COPY_MB * 1e6)
    return (
        NodeStage(name="start the nodes", seconds=NODES_START, basis="not measured"),
        NodeStage(
            name=COPY,
            seconds=Estimate.about(seconds, 1.0),
            basis=f"{_COPY_MB:g} MB a second, not measured",
        ),
        NodeStage(name="train", seconds=trained, basis=basis),
    )


def _by_catalogue(nodes: Sequence[Node], work: TrainingWork, model: GpuModel) -> tuple[Estimate, str]:
    """Seconds of training by the rates of the catalogue, and what they follow from."""
    gpus = [gpu for node in nodes if (gpu := catalog.find(node.instance_type).gpu) for _ in range(node.gpus)]
    rates = model.rates(gpus, work.global_batch)
    links = Links(nodes=len(nodes), ranks=len(rates), gbits=slowest_gbits(nodes))
    fixed, per_row = np.array([rate.line for rate in rates], dtype=np.float64).T.copy()
    step = finish_time(equal_finish_split(work.global_batch, fixed, per_row), fixed, per_row)
    others = links.all_reduce_seconds(model.gradient_bytes(work.global_batch)) + STEP_SECONDS
    steps = work.epochs * steps_per_epoch(work.rows, work.global_batch)
    evaluated = work.epochs * work.validation + work.test
    seconds = steps * (step + others) + evaluated * _EVALUATION * step / work.global_batch
    sources = list(dict.fromkeys(rate.source for rate in rates))
    return Estimate.about(seconds, max(rate.off for rate in rates)), "; ".join(sources)


def _require_measured_on(nodes: Sequence[Node], rates: Rates) -> None:
    """Raise ExperimentError for rates of other nodes; the size of a node does not count, but its GPUs do."""
    if Counter(map(_gpus, nodes)) == Counter(map(_gpus, rates.nodes)):
        return
    measured = f"on {_listed(rates.nodes)}" if rates.nodes else "of this machine"
    raise ExperimentError(
        f"--rates has runs {measured}, and this is a training on {_listed(nodes)}; calibrate with the same GPUs: "
        "shoal calibrate --deployment NAME --output DIR"
    )


def _gpus(node: Node) -> tuple[str, int]:
    """The kind and number of a node's GPUs."""
    gpu = catalog.find(node.instance_type).gpu
    return (gpu.name if gpu else node.instance_type), node.gpus


def _listed(nodes: Sequence[Node]) -> str:
    counts = Counter((*_gpus(node), node.instance_type) for node in nodes)
    return ", ".join(f"{count} {kind} with {gpus} {name} each" for (name, gpus, kind), count in sorted(counts.items()))
