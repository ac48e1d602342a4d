"""Predicts the time and cost of preprocessing and training. One model gives the time:

    start + bytes / (cores * rate) + rows * epochs / (sum of rates * efficiency) + bytes sent / bandwidth

Each assumption is a constant below, with its source and expected range. The range of a result follows from these
ranges. No run on AWS has confirmed the assumptions.

Do not multiply all prices by the total hours. A cluster costs money from the deployment until the guard stops it. GPU
nodes cost money only during a training run. The network costs money until the deployment is destroyed.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from shoal_balance import steps_per_epoch

from common.errors import ExperimentError
from corpus.dataset_settings import DEFAULT
from corpus.rules import VALIDATION_SHARE
from experiments.estimate import NOTHING, Estimate, total
from infra import catalog
from infra.catalog import Gpu
from infra.parts import PreprocessingSpec
from infra.topology import Topology
from trainer.options.optimisation_options import GLOBAL_BATCH
from trainer.registry import MODELS, RunSize

LOCAL_START = Estimate(5.0, 10.0, 20.0)
"""Seconds to start the ranks on this machine and to measure their rates. Measured."""
MACHINE_START = Estimate(60.0, 180.0, 600.0)
"""Seconds from the request for a machine to the first command on it, with Shoal installed. Assumed."""
CLUSTER_START = Estimate(300.0, 420.0, 720.0)
"""Seconds until EMR's nodes have booted. AWS states no time; assumed."""
HADOOP_START = Estimate.about(150.0, 0.6)
"""Total overhead in seconds of the five steps on EMR: polling, YARN's application masters, and one JVM per task.
Assumed."""
NODES_START = Estimate(180.0, 300.0, 600.0)
"""Seconds from the request for GPU nodes to the first command on them. Assumed."""

CORE_RATE = Estimate.about(65e6, 0.6)
"""Bytes of raw reviews per second that one core preprocesses, with rows of whole texts, while all cores are busy.
Measured on an AMD EPYC (Zen 5, 4.0 GHz): 15.3 CPU-seconds per GB. The range is for other machines."""
ONE_CORE_RATE = Estimate.about(1e9, 0.6)
"""Bytes of raw reviews per second in the steps that use only one core: vocabulary and merge. Measured on the core of
CORE_RATE."""
FIXED_ROWS = 1.7
"""Speed-up of preprocessing with the fixed rows of `--preset reference`, compared with whole texts. Measured on the
core of CORE_RATE."""
VCPU: Mapping[str, float] = {
    "m4": 0.20, "m5": 0.25, "m6i": 0.30, "m7i": 0.35, "m6g": 0.30, "c6g": 0.30, "r6g": 0.30,
    "m7g": 0.40, "c7g": 0.40, "r7g": 0.40, "m8g": 0.45,
}  # fmt: skip
"""Speed of one vCPU while all are busy, relative to the core of CORE_RATE, by instance family. Families that are not
listed have the minimum.

Assumed from clock rates and generations: an m4 vCPU is half a Broadwell core, and an m7g vCPU is a whole Graviton3
core.
"""
ALONE = 1.6
"""Speed of a vCPU while all others are idle, relative to its speed while all are busy, because two vCPUs share a core.
Assumed."""
HADOOP_BUSY = 0.8
"""Share of the vCPUs' time that EMR leaves to tasks. Assumed."""
SHUFFLED, MERGED = 2.9, 0.72
"""Bytes sent over the network per byte of raw reviews: by all workers in the shuffle, and by the primary node in the
merge."""
GBIT = Estimate.about(120e6, 0.6)
"""Usable bytes per second of a network with 1 Gbit/s. Assumed."""
COPY_RATE = Estimate.about(100e6, 1.0)
"""Bytes per second at which a dataset is copied from S3 to a shared file system or a node. Assumed."""
WORD_BYTES, ROW_BYTES = 2.0, 400.0
"""Bytes per word in a dataset (measured: 1.9 to 2.2), and per row of whole texts with 200 words."""

FASTTEXT_RATE = Estimate.about(22_500.0, 0.6)
"""Rows, of 200 words each, that fastText's model learns per second on one core. Measured
(benchmarks/results/fasttext.md). More cores hardly raise the rate."""
REFERENCE: Mapping[str, tuple[str, float]] = {"M60": ("g3.4xlarge", 35_920.0), "K80": ("p2.xlarge", 63_923.0)}
"""GPUs on which the reference system measured its LSTM (benchmarks/results/experiments.md): the instance type, and the
seconds for REFERENCE_ROWS.

The speed of other GPUs is assumed to be proportional to their 32-bit TFLOPS, and the time of other LSTMs to their
operations per row. Both assumptions are guesses for a small LSTM.
"""
REFERENCE_ROWS = 10 * int(0.9 * 21_300_000)
"""Number of rows in ten epochs of the reference system's training set."""
OFF_REFERENCE, OFF_GUESSED = 0.25, 1.0
"""Relative uncertainty of a GPU's rate: for GPUs that the reference system measured, and for other GPUs, where the rate
is a guess."""
EFFICIENCY = Estimate(0.9, 0.95, 1.0)
"""Rate of a balanced run divided by the sum of the rates that its ranks reach alone. Includes evaluation, but not
communication. Measured on one machine (benchmarks/results/distributed.md)."""
STEP_SECONDS = Estimate.about(0.001, 1.0)
"""Additional seconds per step for work on the CPU. Assumed."""
GRADIENT_ROWS = 1024
GRADIENT_BYTES, MAX_GRADIENT_BYTES = 2.8e6, 4.1e6
"""Bytes of the gradients of the reference system's model: in a step of GRADIENT_ROWS rows, and the maximum in any step.

The maximum is reached if a batch contains every word, because most gradients are those of the word table.
GRADIENT_BYTES was measured once, on a link of 1 Gbit/s. The number of distinct words in a batch is assumed to grow with
the square root of the number of rows.
"""
INSIDE_RATE = Estimate.about(8e9, 1.0)
"""Bytes per second between the GPUs of a node over PCIe 3. NVLink is many times faster. Assumed."""

SPOT_PRICE = Estimate(0.25, 0.4, 1.0)
"""Price of a spot node relative to its on-demand price. Assumed, because AWS publishes no price list for spot; the spot
price never exceeds the on-demand price."""
SYSTEM_GIB, KEPT_GB = 100, 2.0
"""Size of a single machine's volume: GiB for the system, and additional GB per GB of raw reviews. Assumed."""

FASTTEXT, LSTM, HERE = "fasttext", "lstm", "this machine"
PREPROCESSING = "the rate of a core, measured on another machine"


class Node(NamedTuple):
    instance_type: str
    gpus: int
    """Number of GPUs in use. Each GPU has one rank."""
    efa: bool = False
    """Whether the node has EFA interfaces. EFA uses all network cards of the node."""


def lstm_operations(*, embedding: int, hidden: int, layers: int, words: float = 100.0) -> float:
    """Return the number of multiplications and additions in a training step for one row of `words` words. The backward
    pass is counted as two forward passes."""
    widths = [embedding, *[hidden] * (layers - 1)]
    return 3 * words * sum(2 * 4 * hidden * (width + hidden) for width in widths)


REFERENCE_OPERATIONS = lstm_operations(embedding=100, hidden=32, layers=2)


def default_batch(rows: int) -> int:
    """Return the default global batch, in rows, of an LSTM on GPUs for `rows` training rows."""
    declared = MODELS[LSTM].step_rows
    assert declared is not None
    return declared.of(RunSize(rows=rows, on_gpus=True)) or GLOBAL_BATCH


@dataclass(frozen=True, kw_only=True)
class Training:
    rows: int
    """Training rows per epoch."""
    epochs: int
    dataset_bytes: float
    global_batch: int
    operations: float = REFERENCE_OPERATIONS
    """Multiplications and additions per row in a training step."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Work of a user: to preprocess `raw_bytes` of reviews, and to train on the dataset. Without `raw_bytes`, the
    dataset exists already."""

    rows: int
    epochs: int
    raw_bytes: float | None = None
    known: Training | None = None
    """The training run, or None if its settings are not known."""

    @property
    def training(self) -> Training:
        """The training run: `known`, or a run with default settings on the rows that are in neither the test set nor
        the validation set."""
        if self.known is not None:
            return self.known
        rows = max(1, round((1 - DEFAULT.test_share) * (1 - VALIDATION_SHARE) * self.rows))
        return Training(
            rows=rows, epochs=self.epochs, dataset_bytes=ROW_BYTES * self.rows, global_batch=default_batch(rows)
        )


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Stage of the work. It starts when the previous stage is done."""

    name: str
    seconds: Estimate
    dollars: Estimate = NOTHING
    basis: str
    """Source of the predicted time, as shown to the user."""

    def at(self, hourly: Estimate) -> "Stage":
        return replace(self, dollars=self.seconds * hourly / 3600)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Time and cost of the whole work on a machine or a topology."""

    name: str
    model: str
    stages: tuple[Stage, ...]
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


def gpu_rate(gpu: Gpu, operations: float = REFERENCE_OPERATIONS) -> tuple[Estimate, str]:
    """Return the rows per second that a GPU learns with an LSTM of `operations` operations per row, and the source of
    this rate."""
    slower = operations / REFERENCE_OPERATIONS
    known = {name: REFERENCE_ROWS / seconds for name, (_, seconds) in REFERENCE.items()}
    if gpu.name in known:
        return Estimate.about(known[gpu.name] / slower, OFF_REFERENCE), f"the reference system's time on one {gpu.name}"
    tflops = {name: _gpu(kind).tflops for name, (kind, _) in REFERENCE.items()}
    each = math.prod(rate / tflops[name] for name, rate in known.items()) ** (1 / len(known))
    source = f"{gpu.name} not measured: by TFLOPS from {' and '.join(known)}"
    return Estimate.about(each * gpu.tflops / slower, OFF_GUESSED), source


def _gpu(instance_type: str) -> Gpu:
    if (found := catalog.find(instance_type).gpu) is None:
        raise ExperimentError(f"how fast {instance_type} trains without a GPU is not known")
    return found


def training_stage(nodes: Sequence[Node], work: Training) -> Stage:
    """Return the stage that trains an LSTM on these nodes. Raises ExperimentError if a node has no GPU."""
    kinds = {gpu.name: gpu for gpu in (_gpu(node.instance_type) for node in nodes)}
    gpus = Counter(name for node in nodes for name in [_gpu(node.instance_type).name] * node.gpus)
    ranks, speeds = gpus.total(), {name: gpu_rate(gpu, work.operations) for name, gpu in kinds.items()}
    learning = work.rows * work.epochs / (total(speeds[name][0] * count for name, count in gpus.items()) * EFFICIENCY)
    bandwidth = INSIDE_RATE if len(nodes) == 1 else GBIT * slowest_gbits(nodes)
    gradients = min(MAX_GRADIENT_BYTES, GRADIENT_BYTES * math.sqrt(work.global_batch / GRADIENT_ROWS))
    sent = 2 * (ranks - 1) / ranks * gradients / bandwidth
    steps = work.epochs * steps_per_epoch(work.rows, work.global_batch)
    basis = "; ".join(source for _, source in speeds.values())
    return Stage(name="train", seconds=learning + steps * (STEP_SECONDS + sent), basis=basis)


def slowest_gbits(nodes: Sequence[Node]) -> float:
    """Return the network bandwidth of the slowest node in Gbit/s. TCP uses one network card of a node. EFA uses all
    cards that support EFA."""
    types = [(catalog.find(node.instance_type), node.efa) for node in nodes]
    return min(kind.efa.network if efa and kind.efa else kind.network for kind, efa in types)


def node_stages(nodes: Sequence[Node], work: Training, *, shared: bool) -> tuple[Stage, Stage, Stage]:
    """Return the stages of a training run on GPU nodes: start of the nodes, copy of the dataset, and training.

    If `shared`, the dataset is first copied to the shared file system. Raises the errors of `training_stage`, and
    TopologyError for an unknown instance type.
    """
    copied = (2 if shared else 1) * work.dataset_bytes / COPY_RATE
    return (
        Stage(name="start the nodes", seconds=NODES_START, basis="assumed"),
        Stage(name="copy the data", seconds=copied, basis="assumed"),
        training_stage(nodes, work),
    )


def speed(instance_type: str) -> float:
    """Return the speed of one vCPU of this instance type, while all are busy, relative to the core of CORE_RATE."""
    return VCPU.get(instance_type.partition(".")[0], min(VCPU.values()))


def cluster_seconds(
    primary: str, workers: Sequence[tuple[str, int]], raw_bytes: float, *, fixed_rows: bool = False
) -> Estimate:
    """Return the seconds that preprocessing takes on a cluster. `workers` is pairs of instance type and number.

    Raises TopologyError for an unknown instance type.
    """
    work = raw_bytes / (FIXED_ROWS if fixed_rows else 1.0)
    busy = sum(count * catalog.find(name).vcpu * speed(name) for name, count in workers) * HADOOP_BUSY
    gbits = sum(count * catalog.find(name).network for name, count in workers)
    sent = SHUFFLED * work / (GBIT * gbits) + MERGED * work / (GBIT * catalog.find(primary).network)
    return HADOOP_START + work / (busy * CORE_RATE) + work / (speed(primary) * ONE_CORE_RATE) + sent


def workers_of(cluster: PreprocessingSpec) -> list[tuple[str, int]]:
    """Return the instance types and numbers of the nodes that run tasks. Without workers, the primary node runs the
    tasks."""
    return [(group.instance_type, group.count) for _, group in cluster.workers] or [(cluster.primary.instance_type, 1)]


def machine_seconds(raw_bytes: float, busy: float, alone: float, *, fixed_rows: bool = False) -> Estimate:
    """Return the seconds that preprocessing takes on one machine.

    Speeds are relative to the core of CORE_RATE: `busy` is the speed of all cores together, and `alone` the speed of
    one core while the others are idle.
    """
    work = raw_bytes / (FIXED_ROWS if fixed_rows else 1.0)
    return work / (busy * CORE_RATE) + work / (alone * ONE_CORE_RATE)


def nodes_of(topology: Topology) -> tuple[Node, ...]:
    """Return a topology's GPU nodes when all node groups are scaled up. Without node groups, return the instances of
    its SageMaker training job."""
    if (jobs := topology.managed) and not topology.training:
        gpu = catalog.find(jobs.ec2_type).gpu
        return (Node(jobs.ec2_type, gpu.count if gpu else 1),) * jobs.count
    return tuple(
        node for group in topology.trainers for node in group_nodes(group.types, group.count, group.gpus, group.efa)
    )


def group_nodes(types: Sequence[str], count: int, gpus: int, efa: bool) -> list[Node]:
    """Return the nodes of a group, which alternate over `types`. This is assumed, because AWS chooses the types when
    the nodes start."""
    return [Node(kind, gpus, efa) for kind in itertools.islice(itertools.cycle(types), count)]
