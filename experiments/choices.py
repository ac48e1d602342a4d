"""What machines and topologies take and cost for a user's work, stage after stage."""

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
"""A dearer machine is a choice where it takes at most this share of a cheaper one's time."""


def predict(topology: Topology, work: Work) -> Prediction:
    """The work on a topology, from its deployment to the model. Raises ExperimentError for a topology that lacks the
    nodes for it."""
    setup, running = setup_hourly(topology), running_hourly(topology)
    stages = []
    if work.raw_bytes is not None and not topology.preprocesses_on_node:
        if (made := topology.preprocessing) is None:
            raise ExperimentError(
                f"{topology.name} has no cluster to preprocess with; leave out --raw-bytes, or take a topology with one"
            )
        spent = forecast.cluster_seconds(made.primary.instance_type, forecast.workers_of(made), work.raw_bytes)
        stages = [
            Stage(name="start the cluster", seconds=forecast.CLUSTER_START, basis="assumed").at(setup),
            Stage(name="preprocess", seconds=spent, basis=forecast.PREPROCESSING).at(setup),
        ]
    if nodes := forecast.nodes_of(topology):
        start, copied, train = forecast.node_stages(nodes, work.training, shared=topology.share is not None)
        if topology.preprocesses_on_node and work.raw_bytes is not None:
            made_there = total(_on_machine(catalog.find(nodes[0].instance_type), work.raw_bytes))
            copied = Stage(name="preprocess", seconds=made_there, basis=forecast.PREPROCESSING)
        on_nodes = [stage.at(running) for stage in (start, copied, train)]
        if topology.preprocessing is not None:
            idle = idle_cluster(topology, total(stage.seconds for stage in on_nodes))
            basis = f"meanwhile; the guard ends it after {topology.guard.idle_minutes} idle minutes"
            stages.append(Stage(name="the idle cluster", seconds=NOTHING, dollars=idle, basis=basis))
        stages += on_nodes
    by_use, unpriced = cost_of_share(topology, work.training.dataset_bytes)
    if not stages:
        raise ExperimentError(f"{topology.name} has no GPUs; give --raw-bytes to predict a preprocessing")
    return Prediction(
        name=topology.name,
        model=forecast.LSTM,
        stages=tuple(stages),
        by_use=by_use,
        unknown=(*cost.unknown(topology), *unpriced),
    )


def setup_hourly(topology: Topology) -> Estimate:
    """Dollars an hour from the deployment until the guard ends the idle cluster."""
    return Estimate.exact(sum(row.hourly for row in cost.rows(topology) if row.since != "train"))


def idle_cluster(topology: Topology, seconds: Estimate) -> Estimate:
    """Dollars of the cluster while nodes train for so long beside it: the guard ends it when it was idle."""
    hourly = sum(row.hourly for row in cost.rows(topology) if row.part == "preprocessing")
    return seconds.at_most(60.0 * topology.guard.idle_minutes) * hourly / 3600


def running_hourly(topology: Topology) -> Estimate:
    """Dollars an hour while its GPU nodes run, also those that start with the deployment, or where it has none its
    training job; without the cluster."""
    left_out = ("preprocessing", "network", cost.READING, *([cost.JOBS] if topology.training else []))
    return Estimate.exact(cost.hourly_fixed(topology)) + total(
        _hourly(row) * (forecast.SPOT_PRICE if row.instance and row.at_most else Estimate.exact(1.0))
        for row in cost.rows(topology)
        if row.part not in left_out
    )


def _hourly(row: cost.Row) -> Estimate:
    """Of a row whose nodes may be of several types, as many dear as cheap ones are the middle."""
    low = row.hourly if row.cheapest is None else row.quantity * row.cheapest
    return Estimate(low, (low + row.hourly) / 2, row.hourly)


def cost_of_share(topology: Topology, dataset_bytes: float) -> tuple[float, list[str]]:
    """Dollars of the share, and what of it has no price: the dataset is written once, and read by each node."""
    if topology.share != "efs" or not forecast.nodes_of(topology):
        return 0.0, []
    prices = catalog.prices(topology.region).other
    if prices.efs_write_gib is None or prices.efs_read_gib is None:
        return 0.0, ["the share, by use"]
    return dataset_bytes / (1 << 30) * (prices.efs_write_gib + topology.gpu_nodes * prices.efs_read_gib), []


def machines(work: Work, region: str) -> list[Prediction]:
    """This machine, and of each model the cheapest single one of EC2's in a region, and each that is dearer and faster
    by a quarter. They download the reviews, preprocess them, and train fastText's model on a core, or an LSTM on all
    GPUs."""
    return [_here(work), *_best([*_rented(work, region)])]


def _here(work: Work) -> Prediction:
    """This machine, whose cores count as the one that was measured."""
    made = forecast.machine_seconds(work.raw_bytes or 0.0, cores(), 1.0)
    stages = (
        Stage(name="start", seconds=forecast.LOCAL_START, basis="measured"),
        Stage(name="preprocess", seconds=made, basis=forecast.PREPROCESSING),
        _by_fasttext(work, 1.0),
    )
    return Prediction(name=forecast.HERE, model=forecast.FASTTEXT, stages=stages)


def _by_fasttext(work: Work, alone: float) -> Stage:
    seconds = work.training.rows * work.epochs / (alone * forecast.FASTTEXT_RATE)
    return Stage(name="train", seconds=seconds, basis="rows a second of a core, measured on another machine")


def _rented(work: Work, region: str) -> Iterator[Prediction]:
    prices, raw = catalog.prices(region), work.raw_bytes or 0.0
    gib = forecast.SYSTEM_GIB + round(forecast.KEPT_GB * raw / 1e9)
    for kind in catalog.catalog().types.values():
        hourly = cost.known(prices.hourly, kind.name)
        if kind.retired or hourly is None or (kind.gpu and not kind.image):
            continue
        if kind.gpu is None:
            train, model = _by_fasttext(work, _alone(kind)), forecast.FASTTEXT
        else:
            train, model = forecast.training_stage([Node(kind.name, kind.gpu.count)], work.training), forecast.LSTM
        download, made = _on_machine(kind, raw)
        stages = (
            Stage(name="start", seconds=forecast.MACHINE_START, basis="assumed"),
            Stage(name="download", seconds=download, basis="assumed"),
            Stage(name="preprocess", seconds=made, basis=forecast.PREPROCESSING),
            train,
        )
        volume = cost.known(prices.volume_hourly, gib)
        price = Estimate.exact(hourly + (volume or 0.0))
        unknown = ("the volume",) if volume is None else ()
        yield Prediction(name=kind.name, model=model, stages=tuple(each.at(price) for each in stages), unknown=unknown)


def _on_machine(kind: InstanceType, raw_bytes: float) -> tuple[Estimate, Estimate]:
    """Seconds in which a machine of EC2 downloads raw reviews, and preprocesses them."""
    made = forecast.machine_seconds(raw_bytes, kind.vcpu * forecast.speed(kind.name), _alone(kind))
    return raw_bytes / (forecast.GBIT * kind.network), made


def _alone(kind: InstanceType) -> float:
    """The speed of a machine's one busy vCPU: no thread of Graviton shares its core with another."""
    return forecast.speed(kind.name) * (1.0 if kind.architecture == "arm64" else forecast.ALONE)


def _best(found: Sequence[Prediction]) -> Iterator[Prediction]:
    for model in dict.fromkeys(each.model for each in found):
        quickest = float("inf")
        for each in sorted(
            (each for each in found if each.model == model),
            key=lambda one: (one.dollars.middle, one.seconds.middle),
        ):
            if each.seconds.middle < _FASTER * quickest:
                quickest = each.seconds.middle
                yield each
