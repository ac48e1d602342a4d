"""What a topology will take and cost for a user's data: its stages, one after the other, each with a range.

Do not add up hours times the price of everything: a cluster is paid for from the deployment until the guard ends it,
GPU nodes only while a training runs, and the rest of the network until the deployment is destroyed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.errors import ExperimentError
from experiments.forecast.estimate import Estimate, total
from experiments.forecast.gpu_rates import REFERENCE_MODEL, GpuModel
from experiments.forecast.nodes import COPY, NODES_START, NodeStage, nodes_of, predict_nodes
from experiments.forecast.preprocessing import (
    WHOLE_TEXTS,
    DatasetCosts,
    Workers,
    node_seconds,
    predict_preprocessing,
)
from experiments.forecast.rates import Rates
from experiments.forecast.training import TrainingWork
from infra import catalog, cost
from infra.parts import PreprocessingSpec
from infra.topology import Topology

_CLUSTER_START = Estimate(5 * 60, 7 * 60, 12 * 60)
"""EMR's nodes, with their bootstrap actions. AWS states no time; not measured."""
_OFF_PREPROCESSING = 0.6
"""All but the CPU-seconds is assumed (preprocessing.py)."""

_SPOT_PRICE = Estimate(0.25, 0.4, 1.0)
"""What a spot node costs, of its price on demand: AWS publishes no list, and never asks for more."""
_INTERRUPTIONS = Estimate(0.0003, 0.02, 0.1)
"""How often an hour AWS takes a spot node back. The low end is a fifth of the nodes in a month, the worst class that it
tells apart; GPU nodes are taken back more often where capacity is short."""
_CHECKPOINT_SECONDS = 300.0
"""Between two checkpoints; half of it is lost with a node."""

UPLOAD = "upload the reviews"
"""The stage in which they go over the user's own line, while a cluster waits."""
_PACKED = 0.2
"""Of reviews, the share of their bytes that gzip leaves: 20 of 92.45 GB for the reference's (UCSD's page of them)."""
_MODEL_BYTES = Estimate(8e6, 40e6, 400e6)

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
    spot: bool = False
    """Whether GPU nodes are spot capacity, also where the topology says on demand."""
    costs: DatasetCosts = WHOLE_TEXTS
    """Of the dataset, for which preprocessing asks by default."""
    upload_mbit: float | None = None
    """Of the user's own line, in Mbit/s; None: what is learnt from is in S3 already."""
    stored_bytes: float | None = None
    """Of the raw reviews as they are stored; None: that is not known."""
    model: GpuModel = REFERENCE_MODEL
    """What is trained; its rates count where no others are given."""

    @property
    def training(self) -> TrainingWork:
        """The rows that are trained on and evaluated."""
        return self.model.work(self.rows, self.epochs, self.global_batch, self.costs.row_bytes)


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
    unknown: tuple[str, ...] = ()
    """What has no price: the dollars are without it."""

    @property
    def seconds(self) -> Estimate:
        """From the deployment to the model."""
        return total([stage.seconds for stage in self.stages])

    @property
    def dollars(self) -> Estimate:
        """All of it."""
        return total([*(stage.dollars for stage in self.stages), Estimate.exact(self.by_use)])


def predict_cluster(topology: Topology, work: ClusterWork, rates: Rates | None = None) -> Prediction:
    """The stages of preprocessing and training on a topology, with what each takes and costs.

    `rates`: of the same GPUs, from runs of a deployment; None: those of the catalogue. Raises ExperimentError for a
    topology that has not the nodes for the work, or not those of the rates.
    """
    rows, unknown = cost.rows(topology), tuple(cost.unknown(topology))
    always, cluster = (sum(row.hourly for row in rows if row.since == since) for since in ("always", "deploy"))
    nodes = total(
        [
            Estimate.exact(row.hourly).times(_SPOT_PRICE if row.instance and (work.spot or row.at_most) else 1.0)
            for row in rows
            if row.since == "train" and row.part not in (cost.READING, *([cost.JOBS] if topology.training else []))
        ]
    )
    resting = Estimate.exact(always)
    fixed, running_hourly = Estimate.exact(always + cluster), nodes.plus(Estimate.exact(always))
    stages = []
    if work.raw_bytes is not None and not topology.preprocesses_on_node:
        if topology.preprocessing is None:
            raise ExperimentError(
                f"{topology.name} has no cluster to preprocess with; leave out --raw-bytes, or take a topology with one"
            )
        spent = _preprocessing(topology.preprocessing, work.raw_bytes, work.costs)
        basis = "CPU-seconds measured on another machine; the rest is not measured"
        stages += [
            _stage("start the cluster", _CLUSTER_START, fixed, "not measured"),
            *_uploaded(work, fixed),
            _stage("preprocess", spent, fixed, basis),
        ]
    else:
        stages += _uploaded(work, resting)
    if not (nodes_there := nodes_of(topology)):
        return Prediction(topology=topology, stages=tuple(stages), by_use=0.0, unknown=unknown)
    on_nodes = predict_nodes(
        nodes_there, work.training, shared=topology.share is not None, model=work.model, rates=rates
    )
    if topology.preprocesses_on_node and work.raw_bytes is not None:
        on_nodes = tuple(_made_there(stage, topology, work.raw_bytes, work.costs) for stage in on_nodes)
    running = [_stage(stage.name, stage.seconds, running_hourly, stage.basis) for stage in on_nodes]
    groups = topology.trainers or ([topology.managed] if topology.managed else [])
    if spots := sum(group.count for group in groups if work.spot or group.market == "spot"):
        lost = running[-1].seconds.times(_INTERRUPTIONS).times(spots / 3600)
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
    if work.upload_mbit is not None:
        running.append(_stage("fetch the model", _seconds_of(_MODEL_BYTES, work.upload_mbit), resting, "8 to 400 MB"))
    by_use, unpriced = _by_use(topology, work)
    return Prediction(topology=topology, stages=(*stages, *running), by_use=by_use, unknown=(*unknown, *unpriced))


def _uploaded(work: ClusterWork, hourly: Estimate) -> list[Stage]:
    """What is learnt from, over the user's own line: the reviews, or the dataset."""
    if work.upload_mbit is None:
        return []
    if work.raw_bytes is None:
        size, name = Estimate.exact(work.training.row_bytes * work.training.every_row), "upload the dataset"
        basis = "the rows of the dataset"
    elif work.stored_bytes is not None:
        size, name, basis = Estimate.exact(work.stored_bytes), UPLOAD, "the files as they are"
    else:
        size, name = Estimate(_PACKED * work.raw_bytes, work.raw_bytes, work.raw_bytes), UPLOAD
        basis = "as they are, or packed by gzip"
    text = f"{basis}, at {work.upload_mbit:g} Mbit/s"
    return [_stage(name, _seconds_of(size, work.upload_mbit), hourly, text)]


def _seconds_of(size: Estimate, mbit: float) -> Estimate:
    return size.times(8 / (mbit * 1e6))


def predict_between(topology: Topology, works: Sequence[ClusterWork], rates: Rates | None = None) -> Prediction:
    """The same of work that is known as a range alone: `works` are its least, its middle and its most."""
    least, middle, most = (predict_cluster(topology, work, rates) for work in works)
    stages = tuple(
        replace(
            stage,
            seconds=Estimate(low.seconds.low, stage.seconds.middle, high.seconds.high),
            dollars=Estimate(low.dollars.low, stage.dollars.middle, high.dollars.high),
        )
        for low, stage, high in zip(least.stages, middle.stages, most.stages, strict=True)
    )
    return replace(middle, stages=stages)


def _interruption() -> Estimate:
    """Seconds that an interruption costs."""
    return NODES_START.plus(Estimate.exact(_CHECKPOINT_SECONDS / 2))


def _few(number: Estimate) -> str:
    return f"{number.middle:.2g} ({number.low:.2g} to {number.high:.2g})"


def _stage(name: str, seconds: Estimate, hourly: Estimate, basis: str) -> Stage:
    return Stage(name=name, seconds=seconds, dollars=seconds.times(hourly).times(1 / 3600), basis=basis)


def _preprocessing(cluster: PreprocessingSpec, raw_bytes: float, costs: DatasetCosts) -> Estimate:
    """Seconds of preprocessing. A cluster without workers works on its primary node."""
    groups = [Workers(instance_type=group.instance_type, count=group.count) for _, group in cluster.workers]
    primary = cluster.primary.instance_type
    minutes = predict_preprocessing(
        primary, groups or [Workers(instance_type=primary, count=1)], raw_bytes / 1e9, costs
    )
    return Estimate.about(60 * minutes.all, _OFF_PREPROCESSING)


def _made_there(stage: NodeStage, topology: Topology, raw_bytes: float, costs: DatasetCosts) -> NodeStage:
    """In place of the copy of a dataset, making it of reviews in S3."""
    if stage.name != COPY:
        return stage
    seconds = node_seconds(topology.trainers[0].instance_type, raw_bytes, costs)
    basis = "the node reads and preprocesses the reviews: CPU-seconds measured on another machine"
    return NodeStage(name=COPY, seconds=Estimate.about(seconds, _OFF_PREPROCESSING), basis=basis)


def _by_use(topology: Topology, work: ClusterWork) -> tuple[float, list[str]]:
    """Dollars of the share, and what of it has no price: the dataset is written once, and read by each node."""
    if topology.share != "efs":
        return 0.0, []
    prices = catalog.prices(topology.region).other
    written, read = prices.efs_write_gib, prices.efs_read_gib
    if written is None or read is None:
        return 0.0, ["the share, by use"]
    trained = work.training
    return trained.row_bytes * trained.every_row / (1 << 30) * (written + topology.gpu_nodes * read), []
