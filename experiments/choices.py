"""Predicts the time and cost of a user's work, stage by stage, on machines and on topologies.

Do not multiply all prices by the total hours. A cluster costs money from the deployment until the guard stops it. GPU
nodes cost money only during a training run. The network costs money until the deployment is destroyed.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from common.cores import cores
from common.errors import ExperimentError
from experiments import forecast
from experiments.estimate import NOTHING, Estimate, total
from experiments.forecast import PredictedStage, Work
from infra import catalog, cost
from infra.catalog import InstanceType
from infra.gpu_nodes import PlannedNode, nodes_of
from infra.topology import Topology

SPOT_PRICE = Estimate(0.25, 0.4, 1.0)
"""Price of a spot node relative to its on-demand price. Assumed, because AWS publishes no price list for spot; the spot
price never exceeds the on-demand price."""
SYSTEM_GIB, KEPT_GB = 100, 2.0
"""Size of a single machine's volume: GiB for the system, and additional GB per GB of raw reviews. Assumed."""
_FASTER = 0.75
"""A more expensive machine is offered only if it needs at most this fraction of a cheaper machine's time."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Time and cost of the whole work on a machine or a topology."""

    name: str
    model: str
    stages: tuple[PredictedStage, ...]
    by_use: float = 0.0
    """Dollars for reads and writes of the shared file system, which AWS charges by use and not by the hour."""
    unknown: tuple[str, ...] = ()
    """Charges that have no known price. The dollars exclude them."""

    @property
    def seconds(self) -> Estimate:
        """Seconds from the start of the work to the trained model."""
        return total(stage.seconds for stage in self.stages)

    @property
    def dollars(self) -> Estimate:
        return total(stage.dollars for stage in self.stages) + Estimate.exact(self.by_use)

    def content(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": asdict(self.seconds), "dollars": asdict(self.dollars)}


def predict(topology: Topology, work: Work) -> Prediction:
    """Return the predicted time and cost of `work` on a topology, from the deployment to the trained model.

    Raises ExperimentError if the topology lacks the nodes for the work.
    """
    setup = Estimate.exact(sum(row.hourly for row in cost.rows(topology) if row.since != "train"))
    running = running_hourly(topology)
    stages = []
    if work.raw_bytes is not None and not topology.preprocesses_on_node:
        if (cluster := topology.preprocessing) is None:
            raise ExperimentError(
                f"{topology.name} has no preprocessing cluster; leave out --raw-bytes, or use a topology with a "
                "preprocessing cluster"
            )
        spent = forecast.cluster_seconds(cluster, work.raw_bytes)
        stages = [
            PredictedStage(name="start the cluster", seconds=forecast.CLUSTER_START, basis="assumed").at(setup),
            PredictedStage(name="preprocess", seconds=spent, basis=forecast.PREPROCESSING).at(setup),
        ]
    if nodes := nodes_of(topology):
        start, copied, train = forecast.node_stages(nodes, work, shared=topology.share is not None)
        if topology.preprocesses_on_node and work.raw_bytes is not None:
            on_node = total(_on_machine(catalog.find(nodes[0].instance_type), work.raw_bytes))
            copied = PredictedStage(name="preprocess", seconds=on_node, basis=forecast.PREPROCESSING)
        on_nodes = [stage.at(running) for stage in (start, copied, train)]
        if topology.preprocessing is not None:
            stages.append(_idle_cluster(topology, total(stage.seconds for stage in on_nodes)))
        stages += on_nodes
    if not stages:
        raise ExperimentError(f"{topology.name} has no GPUs; add --raw-bytes to predict only the preprocessing")
    by_use, unpriced = _cost_of_share(topology, work.dataset_bytes)
    unknown = (*cost.unknown(topology), *unpriced)
    return Prediction(name=topology.name, model=work.model, stages=tuple(stages), by_use=by_use, unknown=unknown)


def _idle_cluster(topology: Topology, seconds: Estimate) -> PredictedStage:
    """Return the cost of the idle preprocessing cluster while nodes train for `seconds`. The guard stops the cluster
    after its idle minutes."""
    hourly = sum(row.hourly for row in cost.rows(topology) if row.part == "preprocessing")
    idle = seconds.at_most(60.0 * topology.guard.idle_minutes) * hourly / 3600
    basis = f"in parallel; the guard stops it after {topology.guard.idle_minutes} idle minutes"
    return PredictedStage(name="the idle cluster", seconds=NOTHING, dollars=idle, basis=basis)


def running_hourly(topology: Topology) -> Estimate:
    """Return the dollars per hour while the topology's GPU nodes run. Without node groups, its SageMaker training job
    runs instead.

    The rate includes nodes that start with the deployment, but not the preprocessing cluster. If nodes can have several
    instance types, the estimate ranges from the cheapest to the most expensive type.
    """
    left_out = ("preprocessing", "network", cost.READING, *([cost.JOBS] if topology.training else []))
    hourly = Estimate.exact(cost.hourly_fixed(topology))
    for row in cost.rows(topology):
        if row.part not in left_out:
            low = row.hourly if row.cheapest is None else row.quantity * row.cheapest
            price = Estimate(low, (low + row.hourly) / 2, row.hourly)
            hourly += price * (SPOT_PRICE if row.instance and row.at_most else 1.0)
    return hourly


def _cost_of_share(topology: Topology, dataset_bytes: float) -> tuple[float, list[str]]:
    """Return the dollars that the shared file system costs for reads and writes, and the names of the charges that have
    no price.

    The dataset is written once, and read once by each node.
    """
    if topology.share != "efs" or not nodes_of(topology):
        return 0.0, []
    prices = catalog.prices(topology.region).other
    if prices.efs_write_gib is None or prices.efs_read_gib is None:
        return 0.0, ["the share, by use"]
    return dataset_bytes / (1 << 30) * (prices.efs_write_gib + topology.gpu_nodes * prices.efs_read_gib), []


def machines(work: Work, region: str) -> list[Prediction]:
    """Return predictions for this machine and for single EC2 machines in a region.

    The predictions include the cheapest EC2 machine, and each more expensive machine that needs at most three quarters
    of the time of every cheaper machine. A machine downloads and preprocesses the reviews. Then it trains an LSTM on
    all of its GPUs, or another model on one core. An LSTM is not predicted on this machine.
    """
    found = sorted(_ec2_machines(work, region), key=lambda one: (one.dollars.middle, one.seconds.middle))
    kept = [] if work.model == forecast.LSTM else [_this_machine(work)]
    quickest = float("inf")
    for each in found:
        if each.seconds.middle < _FASTER * quickest:
            quickest = each.seconds.middle
            kept.append(each)
    return kept


def _this_machine(work: Work) -> Prediction:
    """Return the prediction for this machine. It assumes that a core is as fast as a core of the measured machine."""
    made = forecast.machine_seconds(work.raw_bytes or 0.0, cores(), 1.0)
    stages = (
        PredictedStage(name="start", seconds=forecast.LOCAL_START, basis="measured"),
        PredictedStage(name="preprocess", seconds=made, basis=forecast.PREPROCESSING),
        forecast.core_stage(work, 1.0),
    )
    return Prediction(name=forecast.HERE, model=work.model, stages=stages)


def _ec2_machines(work: Work, region: str) -> Iterator[Prediction]:
    prices, raw, on_gpus = catalog.prices(region), work.raw_bytes or 0.0, work.model == forecast.LSTM
    gib = SYSTEM_GIB + round(KEPT_GB * raw / 1e9)
    for kind in catalog.catalog().types.values():
        hourly = cost.known(prices.hourly, kind.name)
        if kind.retired or hourly is None or bool(kind.gpu) != on_gpus or (kind.gpu and not kind.image):
            continue
        if kind.gpu is None:
            train = forecast.core_stage(work, _single_core_speed(kind))
        else:
            train = forecast.training_stage([PlannedNode(kind.name, kind.gpu.count)], work)
        download, preprocess = _on_machine(kind, raw)
        stages = (
            PredictedStage(name="start", seconds=forecast.MACHINE_START, basis="assumed"),
            PredictedStage(name="download", seconds=download, basis="assumed"),
            PredictedStage(name="preprocess", seconds=preprocess, basis=forecast.PREPROCESSING),
            train,
        )
        volume = cost.known(prices.volume_hourly, gib)
        price = Estimate.exact(hourly + (volume or 0.0))
        unknown = ("the volume",) if volume is None else ()
        at = tuple(each.at(price) for each in stages)
        yield Prediction(name=kind.name, model=work.model, stages=at, unknown=unknown)


def _on_machine(kind: InstanceType, raw_bytes: float) -> tuple[Estimate, Estimate]:
    """Return two durations in seconds for an EC2 machine: the download of the raw reviews, and their preprocessing."""
    made = forecast.machine_seconds(raw_bytes, kind.vcpu * forecast.speed(kind.name), _single_core_speed(kind))
    return raw_bytes / (forecast.GBIT * kind.network), made


def _single_core_speed(kind: InstanceType) -> float:
    """Return the speed of one vCPU while all others are idle. The vCPUs of Graviton are whole cores, so they are as
    fast while all are busy."""
    return forecast.speed(kind.name) * (1.0 if kind.architecture == "arm64" else forecast.ALONE)
