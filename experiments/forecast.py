"""Predicts the time of preprocessing and training. One model gives the time:

    start + bytes / (cores * rate) + rows * epochs / (sum of rates * efficiency) + bytes sent / bandwidth

Each assumption is a constant below, with its source and expected range. The range of a result follows from these
ranges. No run on AWS has confirmed the assumptions.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shoal_balance import steps_per_epoch

from common.errors import ExperimentError
from corpus.dataset_settings import DEFAULT, DatasetSize
from corpus.rules import VALIDATION_SHARE
from experiments.estimate import NOTHING, Estimate, total
from infra import catalog
from infra.catalog import Gpu
from infra.gpu_nodes import START_SECONDS, PlannedNode
from infra.parts import PreprocessingSpec
from trainer.config import TrainConfig, configured
from trainer.options.optimisation_options import GLOBAL_BATCH
from trainer.registry import MODELS, Workload

LOCAL_START = Estimate(5.0, 10.0, 20.0)
"""Seconds to start the ranks on this machine and to measure their rates. Measured."""
MACHINE_START = Estimate(60.0, 180.0, 600.0)
"""Seconds from the request for a machine to the first command on it, with Shoal installed. Assumed."""
CLUSTER_START = Estimate(300.0, 420.0, 720.0)
"""Seconds until EMR's nodes have booted. AWS states no time; assumed."""
HADOOP_START = Estimate.about(150.0, 0.6)
"""Total overhead in seconds of the five steps on EMR: polling, YARN's application masters, and one JVM per task.
Assumed."""
NODES_START = Estimate(180.0, START_SECONDS, 600.0)
"""Seconds from the request for GPU nodes to the first command on them. Assumed."""

CORE_RATE = Estimate.about(65e6, 0.6)
"""Bytes of raw reviews per second that one core preprocesses, with rows of whole texts, while all cores are busy.
Measured on an AMD EPYC (Zen 5, 4.0 GHz): 15.3 CPU-seconds per GB. The range is for other machines."""
ONE_CORE_RATE = Estimate.about(1e9, 0.6)
"""Bytes of raw reviews per second in the steps that use only one core: vocabulary and merge. Measured on the core of
CORE_RATE."""
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
WORD_BYTES, WORDS = 2.0, 200.0
"""Bytes per word in a dataset (measured: 1.9 to 2.2), and words of a text of unknown length."""

CORE_ROWS: Mapping[str, Estimate] = {"linear": Estimate.about(9_000.0, 0.6), "fasttext": Estimate.about(22_500.0, 0.6)}
"""Rows of WORDS words that a model learns per second on one core.

Measured: for linear, 60,000 rows of IMDb in 5.6 to 8.2 seconds (benchmarks/results/fasttext-linear.log); for fastText's
model, benchmarks/results/fasttext.md. More cores hardly raise the rate.
"""
GPU_GAIN = Estimate(0.5, 2.0, 10.0)
"""Rate of these two models on a GPU, relative to the core of CORE_ROWS. Assumed, because it was not measured."""
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
GRADIENT_BYTES: Mapping[str, Estimate] = {
    "linear": Estimate(1e6, 8e6, 64e6),
    "fasttext": Estimate(4e6, 16e6, 80e6),
    "lstm": Estimate(1.4e6, 2.8e6, 4.1e6),
}
"""Bytes of a model's gradients in a step. Most are gradients of the rows of its table that the step touches.

For the LSTM, measured once on a link of 1 Gbit/s, with 1,024 rows in a step; the maximum is that of a step with every
word. For the other models assumed; the maximum is the whole table.
"""
INSIDE_RATE = Estimate.about(8e9, 1.0)
"""Bytes per second between the GPUs of a node over PCIe 3. NVLink is many times faster. Assumed."""

LSTM, HERE = "lstm", "this machine"
PREPROCESSING = LEARNING = "the rate of a core, measured on another machine"


def lstm_operations(*, embedding: int, hidden: int, layers: int, words: float = 100.0) -> float:
    """Return the number of multiplications and additions in a training step for one row of `words` words. The backward
    pass is counted as two forward passes."""
    widths = [embedding, *[hidden] * (layers - 1)]
    return 3 * words * sum(2 * 4 * hidden * (width + hidden) for width in widths)


REFERENCE_OPERATIONS = lstm_operations(embedding=100, hidden=32, layers=2)


@dataclass(frozen=True, kw_only=True)
class Work:
    """Work of a user: to preprocess `raw_bytes` of reviews, and to train on the dataset. Without `raw_bytes`, the
    dataset exists already."""

    model: str
    rows: int
    """Training rows per epoch."""
    epochs: int
    global_batch: int
    dataset_bytes: float
    words: float = WORDS
    """Mean number of words per row."""
    operations: float = REFERENCE_OPERATIONS
    """Multiplications and additions of an LSTM per row in a training step."""
    raw_bytes: float | None = None


def planned_work(model: str, rows: int, epochs: int | None, raw_bytes: float | None) -> Work:
    """Return the work for a dataset of `rows` texts, with the model's default settings. `epochs=None` stands for the
    model's default."""
    given = {"model": model, "data": Path("dataset"), "output": Path("output")}
    config = configured(given if epochs is None else {**given, "epochs": epochs})
    test = round(DEFAULT.test_share * rows)
    work = run_work(config, DatasetSize(train=max(1, rows - test), test=test, words=WORDS), ranks=1)
    return replace(work, operations=REFERENCE_OPERATIONS, raw_bytes=raw_bytes)


def run_work(config: TrainConfig, size: DatasetSize, *, ranks: int, embedding: int | None = None) -> Work:
    """Return the work of a run on a dataset. `embedding` is the dimension of given word vectors.

    Raises ExperimentError if the speed of the configured model is unknown.
    """
    if config.model not in GRADIENT_BYTES:
        raise ExperimentError(f"the speed of --model {config.model} is unknown")
    rows, words = config.options.rows_to_learn(max(1, round((1 - VALIDATION_SHARE) * size.train))), size.words
    declared = MODELS[config.model].step_rows
    default = declared and declared.of(
        Workload(rows=rows, on_gpus=True, optimiser=config.optimisation.optimiser, words=words)
    )
    batch = config.optimisation.requested_batch(ranks) or default or GLOBAL_BATCH
    operations = REFERENCE_OPERATIONS
    if config.model == LSTM:
        operations = lstm_operations(
            embedding=embedding or config.options.embedding or 0,
            hidden=config.options.hidden,
            layers=config.options.layers,
            words=min(words, config.options.row_length),
        )
    return Work(
        model=config.model,
        rows=rows,
        epochs=config.optimisation.epochs_for(steps_per_epoch(rows, batch)),
        global_batch=batch,
        dataset_bytes=WORD_BYTES * words * (size.train + size.test),
        words=words,
        operations=operations,
    )


@dataclass(frozen=True, kw_only=True)
class PredictedStage:
    """Stage of the work. It starts when the previous stage is done."""

    name: str
    seconds: Estimate
    dollars: Estimate = NOTHING
    basis: str
    """Source of the predicted time, as shown to the user."""

    def at(self, hourly: Estimate) -> "PredictedStage":
        return replace(self, dollars=self.seconds * hourly / 3600)


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


def core_stage(work: Work, alone: float) -> PredictedStage:
    """Return the stage that trains a model of CORE_ROWS on one core. `alone` is the core's speed while the others are
    idle, relative to the core of CORE_RATE."""
    rate = alone * CORE_ROWS[work.model] * (WORDS / work.words)
    return PredictedStage(name="train", seconds=work.rows * work.epochs / rate, basis=LEARNING)


def training_stage(nodes: Sequence[PlannedNode], work: Work) -> PredictedStage:
    """Return the stage that trains on the GPUs of these nodes. Raises ExperimentError if a node has no GPU."""
    kinds = {gpu.name: gpu for gpu in (_gpu(node.instance_type) for node in nodes)}
    gpus = Counter(name for node in nodes for name in [_gpu(node.instance_type).name] * node.gpus)
    if work.model == LSTM:
        speeds = {name: gpu_rate(gpu, work.operations) for name, gpu in kinds.items()}
    else:
        guess = GPU_GAIN * CORE_ROWS[work.model] * (WORDS / work.words)
        speeds = dict.fromkeys(kinds, (guess, f"{work.model} on GPUs not measured: assumed from a core"))
    learning = work.rows * work.epochs / (total(speeds[name][0] * number for name, number in gpus.items()) * EFFICIENCY)
    bandwidth, ranks = INSIDE_RATE if len(nodes) == 1 else GBIT * slowest_gbits(nodes), gpus.total()
    sent = 2 * (ranks - 1) / ranks * GRADIENT_BYTES[work.model] / bandwidth
    steps = work.epochs * steps_per_epoch(work.rows, work.global_batch)
    basis = "; ".join(dict.fromkeys(source for _, source in speeds.values()))
    return PredictedStage(name="train", seconds=learning + steps * (STEP_SECONDS + sent), basis=basis)


def slowest_gbits(nodes: Sequence[PlannedNode]) -> float:
    """Return the network bandwidth of the slowest node in Gbit/s. TCP uses one network card of a node. EFA uses all
    cards that support EFA."""
    types = [(catalog.find(node.instance_type), node.efa) for node in nodes]
    return min(kind.efa.network if efa and kind.efa else kind.network for kind, efa in types)


def node_stages(
    nodes: Sequence[PlannedNode], work: Work, *, shared: bool
) -> tuple[PredictedStage, PredictedStage, PredictedStage]:
    """Return the stages of a training run on GPU nodes: start of the nodes, copy of the dataset, and training.

    If `shared`, the dataset is first copied to the shared file system. Raises the errors of `training_stage`, and
    TopologyError for an unknown instance type.
    """
    copied = (2 if shared else 1) * work.dataset_bytes / COPY_RATE
    return (
        PredictedStage(name="start the nodes", seconds=NODES_START, basis="assumed"),
        PredictedStage(name="copy the data", seconds=copied, basis="assumed"),
        training_stage(nodes, work),
    )


def speed(instance_type: str) -> float:
    """Return the speed of one vCPU of this instance type, while all are busy, relative to the core of CORE_RATE."""
    return VCPU.get(instance_type.partition(".")[0], min(VCPU.values()))


def cluster_seconds(cluster: PreprocessingSpec, raw_bytes: float) -> Estimate:
    """Return the seconds that preprocessing takes on a cluster. Without workers, its primary node runs the tasks.

    Raises TopologyError for an unknown instance type.
    """
    primary = cluster.primary.instance_type
    workers = [(group.instance_type, group.count) for _, group in cluster.workers] or [(primary, 1)]
    busy = sum(count * catalog.find(name).vcpu * speed(name) for name, count in workers) * HADOOP_BUSY
    gbits = sum(count * catalog.find(name).network for name, count in workers)
    sent = SHUFFLED * raw_bytes / (GBIT * gbits) + MERGED * raw_bytes / (GBIT * catalog.find(primary).network)
    return HADOOP_START + raw_bytes / (busy * CORE_RATE) + raw_bytes / (speed(primary) * ONE_CORE_RATE) + sent


def machine_seconds(raw_bytes: float, busy: float, alone: float) -> Estimate:
    """Return the seconds that preprocessing takes on one machine.

    Speeds are relative to the core of CORE_RATE: `busy` is the speed of all cores together, and `alone` the speed of
    one core while the others are idle.
    """
    return raw_bytes / (busy * CORE_RATE) + raw_bytes / (alone * ONE_CORE_RATE)
