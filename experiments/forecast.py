"""What preprocessing and training will take and cost: one model, with its assumptions.

    start + bytes / (cores * rate) + rows * epochs / (sum of rates * efficiency) + bytes sent / bandwidth

Each assumption is a constant below, with its source and the range in which it is expected; the range of a result
follows from theirs. No run on AWS has checked them.

Do not multiply hours by the price of everything. A cluster is paid for from the deployment until the guard ends it, GPU
nodes only while a training runs, and the rest of the network until the deployment is destroyed.
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
"""Seconds in which processes start here, and measure their rates. Measured."""
MACHINE_START = Estimate(60.0, 180.0, 600.0)
"""Seconds from the request for a machine to the first command on it, with Shoal installed. Assumed."""
CLUSTER_START = Estimate(300.0, 420.0, 720.0)
"""Seconds until EMR's nodes have booted. AWS states no time; assumed."""
HADOOP_START = Estimate.about(150.0, 0.6)
"""Seconds between the five steps on EMR: polling, YARN's application master, a JVM for each task. Assumed."""
NODES_START = Estimate(180.0, 300.0, 600.0)
"""Seconds from the request for GPU nodes to the first command on them. Assumed."""

CORE_RATE = Estimate.about(65e6, 0.6)
"""Bytes of raw reviews a second that one busy core makes a dataset of whole texts of. Measured on an AMD EPYC (Zen 5,
4.0 GHz): 15.3 CPU-seconds a GB; the range is for other machines."""
ONE_CORE_RATE = Estimate.about(1e9, 0.6)
"""Bytes of raw reviews a second in the steps that run on one core: the vocabulary and the merge. Measured there."""
FIXED_ROWS = 1.7
"""How many times as fast the rows of `--preset reference` are made. Measured there."""
VCPU: Mapping[str, float] = {
    "m4": 0.20, "m5": 0.25, "m6i": 0.30, "m7i": 0.35, "m6g": 0.30, "c6g": 0.30, "r6g": 0.30,
    "m7g": 0.40, "c7g": 0.40, "r7g": 0.40, "m8g": 0.45,
}  # fmt: skip
"""What a busy vCPU does of the work of that core, by family; of another family the least. Assumed, by clock rates and
generations: an m4 has half a Broadwell core, an m7g a whole Graviton3 core."""
ALONE = 1.6
"""What a vCPU does while the others are idle, to what it does while all are busy: two threads share a core. Assumed."""
HADOOP_BUSY = 0.8
"""The share of the vCPUs' time that tasks have on EMR. Assumed."""
SHUFFLED, MERGED = 2.9, 0.72
"""Bytes through the network of all workers, and through that of the primary node, for a byte of raw reviews."""
GBIT = Estimate.about(120e6, 0.6)
"""Bytes a second that a network of 1 Gbit/s carries. Assumed."""
COPY_RATE = Estimate.about(100e6, 1.0)
"""Bytes a second at which a dataset comes from S3 to a share, or to a node. Assumed."""
WORD_BYTES, ROW_BYTES = 2.0, 400.0
"""Bytes of a word in a dataset, measured: 1.9 to 2.2; and of a row of whole texts, of 200 words."""

FASTTEXT_RATE = Estimate.about(22_500.0, 0.6)
"""Rows a second that one core learns by fastText's model, of 200 words. Measured (benchmarks/results/fasttext.md);
more cores are hardly faster."""
REFERENCE: Mapping[str, tuple[str, float]] = {"M60": ("g3.4xlarge", 35_920.0), "K80": ("p2.xlarge", 63_923.0)}
"""The GPUs on which the reference has measured its LSTM (benchmarks/results/experiments.md), each with its instance
type and the seconds of REFERENCE_ROWS. Others are taken to be faster in proportion to their TFLOPS in 32 bits, and
other LSTMs to be slower in proportion to their operations. Both are guesses for a small LSTM."""
REFERENCE_ROWS = 10 * int(0.9 * 21_300_000)
"""Ten epochs of its rows to train on."""
OFF_REFERENCE, OFF_GUESSED = 0.25, 1.0
"""How far off a GPU's rate may be: measured by the reference; guessed from it."""
EFFICIENCY = Estimate(0.9, 0.95, 1.0)
"""The share of the sum of the ranks' own rates that a balanced training reaches, evaluation included, without the sum
over the ranks. Measured on one machine (benchmarks/results/distributed.md)."""
STEP_SECONDS = Estimate.about(0.001, 1.0)
"""What a step takes besides: the host's own work. Assumed."""
GRADIENT_ROWS = 1024
GRADIENT_BYTES, MOST_GRADIENT_BYTES = 2.8e6, 4.1e6
"""Bytes of the gradients of the reference's model: in a step of GRADIENT_ROWS rows, and where a batch touches every row
of the word table, which most of them belong to. The first was measured once, on a link of 1 Gbit/s. The number of words
that a batch touches is taken to grow with the square root of its rows."""
INSIDE_RATE = Estimate.about(8e9, 1.0)
"""Bytes a second between the GPUs of a node, over PCIe 3; NVLink has many times as much. Assumed."""

SPOT_PRICE = Estimate(0.25, 0.4, 1.0)
"""What a spot node costs, of its price on demand: AWS publishes no list, and never asks for more. Assumed."""
SYSTEM_GIB, KEPT_GB = 100, 2.0
"""The volume of a single machine: of the system, and for each GB of raw reviews. Assumed."""

FASTTEXT, LSTM, HERE = "fasttext", "lstm", "this machine"
PREPROCESSING = "bytes a second of a core, measured on another machine"


class Node(NamedTuple):
    instance_type: str
    gpus: int
    """Of its GPUs those that are used, a rank each."""
    efa: bool = False
    """Whether it has EFA interfaces, which reach others through all of its network cards."""


def lstm_operations(*, embedding: int, hidden: int, layers: int, words: float = 100.0) -> float:
    """Multiplications and additions of a step for a row of so many words; backward takes twice as many as forward."""
    widths = [embedding, *[hidden] * (layers - 1)]
    return 3 * words * sum(2 * 4 * hidden * (width + hidden) for width in widths)


REFERENCE_OPERATIONS = lstm_operations(embedding=100, hidden=32, layers=2)


def default_batch(rows: int) -> int:
    """The rows of a step of an LSTM on GPUs that learns so many rows, where none are given."""
    declared = MODELS[LSTM].step_rows
    assert declared is not None
    return declared.of(RunSize(rows=rows, on_gpus=True)) or GLOBAL_BATCH


@dataclass(frozen=True, kw_only=True)
class Training:
    rows: int
    """To learn from, an epoch."""
    epochs: int
    dataset_bytes: float
    global_batch: int
    operations: float = REFERENCE_OPERATIONS
    """Of a step, for a row."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a user wants: a dataset of so many rows, of raw reviews that are preprocessed (None: it is there already),
    and a training on it."""

    rows: int
    epochs: int
    raw_bytes: float | None = None
    known: Training | None = None
    """The training, where more is known of it."""

    @property
    def training(self) -> Training:
        """On the rows that are left by test and validation."""
        if self.known is not None:
            return self.known
        rows = max(1, round((1 - DEFAULT.test_share) * (1 - VALIDATION_SHARE) * self.rows))
        return Training(
            rows=rows, epochs=self.epochs, dataset_bytes=ROW_BYTES * self.rows, global_batch=default_batch(rows)
        )


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of the work, which follows the one before."""

    name: str
    seconds: Estimate
    dollars: Estimate = NOTHING
    basis: str
    """What the time follows from, for the user."""

    def at(self, hourly: Estimate) -> "Stage":
        return replace(self, dollars=self.seconds * hourly / 3600)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What all of the work takes and costs on a machine or a topology."""

    name: str
    model: str
    stages: tuple[Stage, ...]
    by_use: float = 0.0
    """Dollars for what is paid for by use: the share's reads and writes."""
    unknown: tuple[str, ...] = ()
    """What has no price: the dollars are without it."""

    @property
    def seconds(self) -> Estimate:
        """From the beginning to the model."""
        return total(stage.seconds for stage in self.stages)

    @property
    def dollars(self) -> Estimate:
        return total(stage.dollars for stage in self.stages) + Estimate.exact(self.by_use)

    def content(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": asdict(self.seconds), "dollars": asdict(self.dollars)}


def gpu_rate(gpu: Gpu, operations: float = REFERENCE_OPERATIONS) -> tuple[Estimate, str]:
    """Rows a second that a GPU of the catalogue learns by an LSTM of so many operations, and the source of that."""
    slower = operations / REFERENCE_OPERATIONS
    known = {name: REFERENCE_ROWS / seconds for name, (_, seconds) in REFERENCE.items()}
    if gpu.name in known:
        return Estimate.about(known[gpu.name] / slower, OFF_REFERENCE), f"the reference's own time on one {gpu.name}"
    tflops = {name: _gpu(kind).tflops for name, (kind, _) in REFERENCE.items()}
    each = math.prod(rate / tflops[name] for name, rate in known.items()) ** (1 / len(known))
    source = f"{gpu.name} not measured: by TFLOPS from {' and '.join(known)}"
    return Estimate.about(each * gpu.tflops / slower, OFF_GUESSED), source


def _gpu(instance_type: str) -> Gpu:
    if (found := catalog.find(instance_type).gpu) is None:
        raise ExperimentError(f"how fast {instance_type} trains without a GPU is not known")
    return found


def training_stage(nodes: Sequence[Node], work: Training) -> Stage:
    """The training of an LSTM on these nodes, by the catalogue. Raises ExperimentError for nodes without a GPU."""
    kinds = {gpu.name: gpu for gpu in (_gpu(node.instance_type) for node in nodes)}
    gpus = Counter(name for node in nodes for name in [_gpu(node.instance_type).name] * node.gpus)
    ranks, speeds = gpus.total(), {name: gpu_rate(gpu, work.operations) for name, gpu in kinds.items()}
    learnt = work.rows * work.epochs / (total(speeds[name][0] * count for name, count in gpus.items()) * EFFICIENCY)
    bandwidth = INSIDE_RATE if len(nodes) == 1 else GBIT * slowest_gbits(nodes)
    gradients = min(MOST_GRADIENT_BYTES, GRADIENT_BYTES * math.sqrt(work.global_batch / GRADIENT_ROWS))
    sent = 2 * (ranks - 1) / ranks * gradients / bandwidth
    steps = work.epochs * steps_per_epoch(work.rows, work.global_batch)
    basis = "; ".join(source for _, source in speeds.values())
    return Stage(name="train", seconds=learnt + steps * (STEP_SECONDS + sent), basis=basis)


def slowest_gbits(nodes: Sequence[Node]) -> float:
    """Gbit/s of the slowest node's network: TCP uses one of its network cards, EFA all that carry it."""
    types = [(catalog.find(node.instance_type), node.efa) for node in nodes]
    return min(kind.efa.network if efa and kind.efa else kind.network for kind, efa in types)


def node_stages(nodes: Sequence[Node], work: Training, *, shared: bool) -> tuple[Stage, Stage, Stage]:
    """A training on GPU nodes, which have a `shared` folder, to which the dataset is copied first, or one each. Raises
    what `training_stage` raises, and TopologyError for an unknown type."""
    copied = (2 if shared else 1) * work.dataset_bytes / COPY_RATE
    return (
        Stage(name="start the nodes", seconds=NODES_START, basis="assumed"),
        Stage(name="copy the data", seconds=copied, basis="assumed"),
        training_stage(nodes, work),
    )


def speed(instance_type: str) -> float:
    """What one of its vCPUs does of the work of the core that was measured, while all are busy."""
    return VCPU.get(instance_type.partition(".")[0], min(VCPU.values()))


def cluster_seconds(
    primary: str, workers: Sequence[tuple[str, int]], raw_bytes: float, *, fixed_rows: bool = False
) -> Estimate:
    """Preprocessing on a cluster with these workers, by type and number. Raises TopologyError for an unknown type."""
    work = raw_bytes / (FIXED_ROWS if fixed_rows else 1.0)
    busy = sum(count * catalog.find(name).vcpu * speed(name) for name, count in workers) * HADOOP_BUSY
    gbits = sum(count * catalog.find(name).network for name, count in workers)
    sent = SHUFFLED * work / (GBIT * gbits) + MERGED * work / (GBIT * catalog.find(primary).network)
    return HADOOP_START + work / (busy * CORE_RATE) + work / (speed(primary) * ONE_CORE_RATE) + sent


def workers_of(cluster: PreprocessingSpec) -> list[tuple[str, int]]:
    """Type and number of the nodes that work; a cluster without workers works on its primary node."""
    return [(group.instance_type, group.count) for _, group in cluster.workers] or [(cluster.primary.instance_type, 1)]


def machine_seconds(raw_bytes: float, busy: float, alone: float, *, fixed_rows: bool = False) -> Estimate:
    """Preprocessing on one machine; `busy`, `alone`: all of its cores together, and one that works alone, as cores of
    the machine that was measured."""
    work = raw_bytes / (FIXED_ROWS if fixed_rows else 1.0)
    return work / (busy * CORE_RATE) + work / (alone * ONE_CORE_RATE)


def nodes_of(topology: Topology) -> tuple[Node, ...]:
    """The GPU nodes of a topology when all of its groups are scaled up; without groups the machines of a job."""
    if (jobs := topology.managed) and not topology.training:
        gpu = catalog.find(jobs.ec2_type).gpu
        return (Node(jobs.ec2_type, gpu.count if gpu else 1),) * jobs.count
    return tuple(
        node for group in topology.trainers for node in of_group(group.types, group.count, group.gpus, group.efa)
    )


def of_group(types: Sequence[str], count: int, gpus: int, efa: bool) -> list[Node]:
    """The nodes of a group, of each of its types in turn: which AWS takes is not known before. Assumed."""
    return [Node(kind, gpus, efa) for kind in itertools.islice(itertools.cycle(types), count)]
