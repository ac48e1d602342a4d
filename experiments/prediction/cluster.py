"""What a topology will take and cost for a user's data: its stages, one after the other, each with a range.

Do not add up hours times the price of everything: a cluster is paid for from the deployment until the guard ends it,
GPU nodes only while a training runs, and the rest of the network until the deployment is destroyed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.errors import ExperimentError
from experiments.prediction.communication import Links
from experiments.prediction.estimate import Estimate, total
from experiments.prediction.gpu_rates import REFERENCE_OPERATIONS, GpuRate, rate_by_catalogue
from experiments.prediction.preprocessing import Workers, predict_preprocessing
from infra import catalog, cost
from infra.catalog import Gpu
from infra.parts import PreprocessingSpec
from infra.topology import Topology
from trainer.balancing.split import equal_finish_split, finish_time
from trainer.order import steps_per_epoch

_CLUSTER_START = Estimate(5 * 60, 7 * 60, 12 * 60)
"""EMR's nodes, with their bootstrap actions. AWS states no time; not measured."""
_NODES_START = Estimate(3 * 60, 5 * 60, 10 * 60)
"""A GPU node from its start to its first command; not measured."""
_OFF_PREPROCESSING = 0.6
"""All but the CPU-seconds is assumed (preprocessing.py)."""
_ROW_BYTES = 100
"""Of a row in the packed dataset: half of 204 bytes, 100 ids and its numbers (docs/benchmarks.md, HDF5)."""
_COPY_MB = 100.0
"""MB a second at which a dataset comes from S3 to a share, or to a node."""
MESSAGE_BYTES = 2.0e6
"""Of the gradients of the reference's model at batches of 512, with the touched rows of the word table alone."""
STEP_SECONDS = 0.001
"""What a step takes besides computing and the sum over the ranks: the host's own work. An assumption."""
_TRAINED, _JUDGED = 0.855, 0.045
"""Shares of a dataset's rows: nine tenths are not test rows, and a twentieth of these are for validation."""
_TESTED = 0.1
_JUDGING = 1 / 3
"""Time of judging a row to that of learning from it: no backward pass."""

_SPOT_PRICE = Estimate(0.25, 0.4, 1.0)
"""What a spot node costs, of its price on demand: AWS publishes no list, and never asks for more."""
_INTERRUPTIONS = Estimate(0.0003, 0.02, 0.1)
"""How often an hour AWS takes a spot node back. The low end is a fifth of the nodes in a month, the worst class that it
tells apart; GPU nodes are taken back more often where capacity is short."""
_CHECKPOINT_SECONDS = 300.0
"""Between two checkpoints; half of it is lost with a node."""

GLOBAL_BATCH = 1024
"""For which is predicted where the user names no other: GPUs are idle in smaller ones."""


@dataclass(frozen=True, kw_only=True)
class ClusterWork:
    """What is to be done."""

    rows: int
    """Of the dataset: distinct texts."""
    raw_bytes: float | None
    """Of the raw reviews, unpacked; None: the dataset is there already."""
    epochs: int
    global_batch: int = GLOBAL_BATCH
    operations: float = REFERENCE_OPERATIONS
    """Of the model, a row."""
    spot: bool = False
    """Whether GPU nodes are spot capacity, also where the topology says on demand."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of the whole, which follows the one before."""

    name: str
    seconds: Estimate
    dollars: Estimate
    basis: str
    """What the time follows from, for the user."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The stages of a deployment's work."""

    topology: Topology
    stages: tuple[Stage, ...]
    by_use: float
    """Dollars for what is paid for by use: the share's reads and writes."""

    @property
    def seconds(self) -> Estimate:
        """From the deployment to the model."""
        return total([stage.seconds for stage in self.stages])

    @property
    def dollars(self) -> Estimate:
        """All of it."""
        return total([*(stage.dollars for stage in self.stages), Estimate.exact(self.by_use)])


def predict_cluster(
    topology: Topology, work: ClusterWork, rate_of: Callable[[Gpu, float], GpuRate] = rate_by_catalogue
) -> Prediction:
    """The stages of preprocessing and training on a topology, with what each takes and costs.

    `rate_of`: the rate of a GPU for a model of so many operations a row. Raises ExperimentError for a topology that has
    not the nodes for the work, and TopologyError where a price is missing.
    """
    rows = cost.rows(topology)
    always, cluster = (sum(row.hourly for row in rows if row.since == since) for since in ("always", "deploy"))
    nodes = total(
        [
            Estimate.exact(row.hourly).times(_SPOT_PRICE if row.instance and (work.spot or row.at_most) else 1.0)
            for row in rows
            if row.since == "train"
        ]
    )
    fixed, running_hourly = Estimate.exact(always + cluster), nodes.plus(Estimate.exact(always))
    stages = []
    if work.raw_bytes is not None:
        if topology.preprocessing is None:
            raise ExperimentError(
                f"{topology.name} has no cluster to preprocess with; leave out --raw-bytes, or take a topology with one"
            )
        spent = _preprocessing(topology.preprocessing, work.raw_bytes)
        basis = "CPU-seconds measured on another machine; the rest is not measured"
        stages += [
            _stage("start the cluster", _CLUSTER_START, fixed, "not measured"),
            _stage("preprocess", spent, fixed, basis),
        ]
    if not topology.training:
        return Prediction(topology=topology, stages=tuple(stages), by_use=0.0)
    trained, basis = _training(topology, work, rate_of)
    running = [
        _stage("start the nodes", _NODES_START, running_hourly, "not measured"),
        _stage("copy the dataset", _copying(topology, work), running_hourly, f"{_COPY_MB:g} MB a second, not measured"),
        _stage("train", trained, running_hourly, basis),
    ]
    if spots := sum(group.count for group in topology.training if work.spot or group.market == "spot"):
        lost = trained.times(_INTERRUPTIONS).times(spots / 3600)
        basis = f"{_few(lost)} expected of {spots} spot nodes; each costs a start and half the time between checkpoints"
        running.append(_stage("interruptions", lost.times(_interruption()), running_hourly, basis))
    if cluster:
        minutes = topology.guard.idle_minutes
        until = Estimate(*(min(60.0 * minutes, each) for each in total([stage.seconds for stage in running])))
        basis = f"meanwhile; the guard ends it after {minutes} idle minutes"
        idle = Stage(
            name="the idle cluster", seconds=Estimate.exact(0.0), dollars=until.times(cluster / 3600), basis=basis
        )
        stages.append(idle)
    return Prediction(topology=topology, stages=(*stages, *running), by_use=_by_use(topology, work))


def _interruption() -> Estimate:
    """Seconds that an interruption costs."""
    return _NODES_START.plus(Estimate.exact(_CHECKPOINT_SECONDS / 2))


def _few(number: Estimate) -> str:
    return f"{number.middle:.2g} ({number.low:.2g} to {number.high:.2g})"


def _stage(name: str, seconds: Estimate, hourly: Estimate, basis: str) -> Stage:
    return Stage(name=name, seconds=seconds, dollars=seconds.times(hourly).times(1 / 3600), basis=basis)


def _preprocessing(cluster: PreprocessingSpec, raw_bytes: float) -> Estimate:
    """Seconds of preprocessing. A cluster without workers works on its primary node."""
    groups = [Workers(instance_type=group.instance_type, count=group.count) for _, group in cluster.workers]
    primary = cluster.primary.instance_type
    minutes = predict_preprocessing(primary, groups or [Workers(instance_type=primary, count=1)], raw_bytes / 1e9)
    return Estimate.about(60 * minutes.all, _OFF_PREPROCESSING)


def _dataset_bytes(work: ClusterWork) -> float:
    return _ROW_BYTES * work.rows


def _copying(topology: Topology, work: ClusterWork) -> Estimate:
    """Seconds until every node has the dataset: to the share, and from there; without a share all nodes at once."""
    copies = 2 if topology.share else 1
    return Estimate.about(copies * _dataset_bytes(work) / (_COPY_MB * 1e6), 1.0)


def _training(topology: Topology, work: ClusterWork, rate_of: Callable[[Gpu, float], GpuRate]) -> tuple[Estimate, str]:
    """Seconds of training, and what they follow from."""
    rates: list[GpuRate] = []
    for group in topology.training:
        gpu = catalog.find(group.instance_type).gpu
        assert gpu is not None
        rates += [rate_of(gpu, work.operations)] * (group.count * group.gpus)
    links = Links(
        nodes=topology.gpu_nodes,
        ranks=len(rates),
        gbits=min(catalog.find(group.instance_type).network for group in topology.training),
    )
    fixed, per_row = np.array([rate.line for rate in rates], dtype=np.float64).T.copy()
    split = equal_finish_split(work.global_batch, fixed, per_row)
    step = finish_time(split, fixed, per_row)
    others = links.all_reduce_seconds(MESSAGE_BYTES) + STEP_SECONDS
    steps = work.epochs * steps_per_epoch(max(1, int(_TRAINED * work.rows)), work.global_batch)
    judged = (_JUDGED * work.epochs + _TESTED) * work.rows
    seconds = steps * (step + others) + judged * _JUDGING * step / work.global_batch
    sources = list(dict.fromkeys(rate.source for rate in rates))
    return Estimate.about(seconds, max(rate.off for rate in rates)), "; ".join(sources)


def _by_use(topology: Topology, work: ClusterWork) -> float:
    """Dollars of the share: the dataset is written once, and read by each node."""
    if topology.share != "efs":
        return 0.0
    prices = catalog.prices(topology.region).other
    gib = _dataset_bytes(work) / (1 << 30)
    return gib * (prices.efs_write_gib + topology.gpu_nodes * prices.efs_read_gib)
