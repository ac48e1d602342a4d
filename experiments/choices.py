"""Predicts the time and cost of a user's work, stage by stage, on machines and on topologies."""

from collections.abc import Iterator, Sequence

from common.cores import cores
from common.errors import ExperimentError
from experiments import forecast
from experiments.estimate import NOTHING, Estimate, total
from experiments.forecast import Node, Prediction, Stage, Work
from infra import catalog, cost
from infra.catalog import InstanceType
from infra.topology import Topology

_FASTER = 0.75
"""A more expensive machine is offered only if it needs at most this fraction of a cheaper machine's time."""


def predict(topology: Topology, work: Work) -> Prediction:
    """Return the predicted time and cost of `work` on a topology, from the deployment to the trained model.

    Raises ExperimentError if the topology lacks the nodes for the work.
    """
    setup, running = setup_hourly(topology), running_hourly(topology)
    stages = []
    if work.raw_bytes is not None and not topology.preprocesses_on_node:
        if (cluster := topology.preprocessing) is None:
            raise ExperimentError(
                f"{topology.name} has no preprocessing cluster; leave out --raw-bytes, or use a topology with a "
                "preprocessing cluster"
            )
        spent = forecast.cluster_seconds(cluster.primary.instance_type, forecast.workers_of(cluster), work.raw_bytes)
        stages = [
            Stage(name="start the cluster", seconds=forecast.CLUSTER_START, basis="assumed").at(setup),
            Stage(name="preprocess", seconds=spent, basis=forecast.PREPROCESSING).at(setup),
        ]
    if nodes := forecast.nodes_of(topology):
        start, copied, train = forecast.node_stages(nodes, work.training, shared=topology.share is not None)
        if topology.preprocesses_on_node and work.raw_bytes is not None:
            on_node = total(_on_machine(catalog.find(nodes[0].instance_type), work.raw_bytes))
            copied = Stage(name="preprocess", seconds=on_node, basis=forecast.PREPROCESSING)
        on_nodes = [stage.at(running) for stage in (start, copied, train)]
        if topology.preprocessing is not None:
            idle = idle_cluster(topology, total(stage.seconds for stage in on_nodes))
            basis = f"in parallel; the guard stops it after {topology.guard.idle_minutes} idle minutes"
            stages.append(Stage(name="the idle cluster", seconds=NOTHING, dollars=idle, basis=basis))
        stages += on_nodes
    by_use, unpriced = cost_of_share(topology, work.training.dataset_bytes)
    if not stages:
        raise ExperimentError(f"{topology.name} has no GPUs; add --raw-bytes to predict only the preprocessing")
    return Prediction(
        name=topology.name,
        model=forecast.LSTM,
        stages=tuple(stages),
        by_use=by_use,
        unknown=(*cost.unknown(topology), *unpriced),
    )


def setup_hourly(topology: Topology) -> Estimate:
    """Return the dollars per hour from the deployment until the guard stops the idle preprocessing cluster."""
    return Estimate.exact(sum(row.hourly for row in cost.rows(topology) if row.since != "train"))


def idle_cluster(topology: Topology, seconds: Estimate) -> Estimate:
    """Return the cost in dollars of the idle preprocessing cluster while nodes train for `seconds`. The guard stops the
    cluster after its idle minutes."""
    hourly = sum(row.hourly for row in cost.rows(topology) if row.part == "preprocessing")
    return seconds.at_most(60.0 * topology.guard.idle_minutes) * hourly / 3600


def running_hourly(topology: Topology) -> Estimate:
    """Return the dollars per hour while the topology's GPU nodes run. Without node groups, its SageMaker training job
    runs instead.

    The rate includes nodes that start with the deployment, but not the preprocessing cluster.
    """
    left_out = ("preprocessing", "network", cost.READING, *([cost.JOBS] if topology.training else []))
    return Estimate.exact(cost.hourly_fixed(topology)) + total(
        _hourly(row) * (forecast.SPOT_PRICE if row.instance and row.at_most else Estimate.exact(1.0))
        for row in cost.rows(topology)
        if row.part not in left_out
    )


def _hourly(row: cost.Row) -> Estimate:
    """Return the hourly cost of a row of the cost table. If its nodes can have several instance types, the estimate
    ranges from the cheapest to the most expensive type."""
    low = row.hourly if row.cheapest is None else row.quantity * row.cheapest
    return Estimate(low, (low + row.hourly) / 2, row.hourly)


def cost_of_share(topology: Topology, dataset_bytes: float) -> tuple[float, list[str]]:
    """Return the dollars that the shared file system costs for reads and writes, and the names of the charges that have
    no price.

    The dataset is written once, and read once by each node.
    """
    if topology.share != "efs" or not forecast.nodes_of(topology):
        return 0.0, []
    prices = catalog.prices(topology.region).other
    if prices.efs_write_gib is None or prices.efs_read_gib is None:
        return 0.0, ["the share, by use"]
    return dataset_bytes / (1 << 30) * (prices.efs_write_gib + topology.gpu_nodes * prices.efs_read_gib), []


def machines(work: Work, region: str) -> list[Prediction]:
    """Return predictions for this machine and for single EC2 machines in a region.

    For each model, the predictions include the cheapest machine, and each more expensive machine that needs at most
    three quarters of the time of every cheaper machine. A machine downloads and preprocesses the reviews. Then it
    trains fastText's model on one core, or an LSTM on all of its GPUs.
    """
    return [_this_machine(work), *_cheapest_and_faster([*_ec2_machines(work, region)])]


def _this_machine(work: Work) -> Prediction:
    """Return the prediction for this machine. It assumes that a core is as fast as a core of the measured machine."""
    made = forecast.machine_seconds(work.raw_bytes or 0.0, cores(), 1.0)
    stages = (
        Stage(name="start", seconds=forecast.LOCAL_START, basis="measured"),
        Stage(name="preprocess", seconds=made, basis=forecast.PREPROCESSING),
        _fasttext_stage(work, 1.0),
    )
    return Prediction(name=forecast.HERE, model=forecast.FASTTEXT, stages=stages)


def _fasttext_stage(work: Work, alone: float) -> Stage:
    seconds = work.training.rows * work.epochs / (alone * forecast.FASTTEXT_RATE)
    return Stage(name="train", seconds=seconds, basis="the rate of a core, measured on another machine")


def _ec2_machines(work: Work, region: str) -> Iterator[Prediction]:
    prices, raw = catalog.prices(region), work.raw_bytes or 0.0
    gib = forecast.SYSTEM_GIB + round(forecast.KEPT_GB * raw / 1e9)
    for kind in catalog.catalog().types.values():
        hourly = cost.known(prices.hourly, kind.name)
        if kind.retired or hourly is None or (kind.gpu and not kind.image):
            continue
        if kind.gpu is None:
            train, model = _fasttext_stage(work, _single_core_speed(kind)), forecast.FASTTEXT
        else:
            train, model = forecast.training_stage([Node(kind.name, kind.gpu.count)], work.training), forecast.LSTM
        download, preprocess = _on_machine(kind, raw)
        stages = (
            Stage(name="start", seconds=forecast.MACHINE_START, basis="assumed"),
            Stage(name="download", seconds=download, basis="assumed"),
            Stage(name="preprocess", seconds=preprocess, basis=forecast.PREPROCESSING),
            train,
        )
        volume = cost.known(prices.volume_hourly, gib)
        price = Estimate.exact(hourly + (volume or 0.0))
        unknown = ("the volume",) if volume is None else ()
        yield Prediction(name=kind.name, model=model, stages=tuple(each.at(price) for each in stages), unknown=unknown)


def _on_machine(kind: InstanceType, raw_bytes: float) -> tuple[Estimate, Estimate]:
    """Return two durations in seconds for an EC2 machine: the download of the raw reviews, and their preprocessing."""
    made = forecast.machine_seconds(raw_bytes, kind.vcpu * forecast.speed(kind.name), _single_core_speed(kind))
    return raw_bytes / (forecast.GBIT * kind.network), made


def _single_core_speed(kind: InstanceType) -> float:
    """Return the speed of one vCPU while all others are idle. The vCPUs of Graviton are whole cores, so they are as
    fast while all are busy."""
    return forecast.speed(kind.name) * (1.0 if kind.architecture == "arm64" else forecast.ALONE)


def _cheapest_and_faster(found: Sequence[Prediction]) -> Iterator[Prediction]:
    for model in dict.fromkeys(each.model for each in found):
        quickest = float("inf")
        for each in sorted(
            (each for each in found if each.model == model),
            key=lambda one: (one.dollars.middle, one.seconds.middle),
        ):
            if each.seconds.middle < _FASTER * quickest:
                quickest = each.seconds.middle
                yield each
