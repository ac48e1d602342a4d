"""The time of preprocessing on a cluster: CPU-seconds measured here, and assumptions about machines elsewhere.

Only the CPU-seconds a GB of each step were measured (`python -m benchmarks prediction`), on one core of an AMD EPYC
(Zen 5, 4.0 GHz). All else is an assumption on the slow side, named below; nothing was measured on AWS. Do not divide
everything by the number of nodes: the merge and the choice of the vocabulary run on one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infra import catalog


@dataclass(frozen=True, kw_only=True)
class DatasetCosts:
    """What it costs to make a dataset of rows of some kind, and to copy it; all for a GB or a byte of raw input."""

    cpu: Mapping[str, float]
    """CPU-seconds a GB, by step."""
    traffic: float
    """Bytes through the nodes' network a byte: the input is read and shuffled; side files and parts are written and
    read."""
    merged: float
    """Bytes of the dataset a byte; the primary node reads and writes them once."""
    row_bytes: float
    """Of a row in the packed dataset."""


REFERENCE = DatasetCosts(
    cpu={"deduplicate": 8.46, "count words": 0.13, "choose vocabulary": 0.0, "encode": 0.40, "merge": 0.19},
    traffic=1.7,
    merged=0.14,
    row_bytes=100,  # half of 204, 100 ids and its numbers (docs/benchmarks.md, HDF5)
)
"""Rows of the reference."""
STEPS = tuple(REFERENCE.cpu)
WORD_BYTES = 2.0
"""Of a word of whole texts in the packed dataset: 1.9 of film reviews, 2.2 of 10,000 product reviews."""
WHOLE_TEXTS = DatasetCosts(
    cpu={"deduplicate": 11.6, "count words": 1.0, "choose vocabulary": 0.4, "encode": 2.7, "merge": 0.6},
    traffic=2.9,
    merged=0.36,
    row_bytes=WORD_BYTES * 200,  # words as generated reviews have them
)
"""Whole texts with all of their words, as `shoal preprocess` makes them by default. The CPU-seconds by their ratio to
those of the reference's rows in the same run."""

_ON_ONE_NODE = ("choose vocabulary", "merge")
_STEP_START_S = 30.0
"""From one step's end to the first task of the next: EMR's polling, YARN's application master, a JVM a task."""
_BUSY = 0.8
"""The share of the vCPUs' time that tasks have: the rest is Hadoop's own, stragglers, and the last wave."""
MB_A_GBIT = 120.0
"""MB a second that a network of 1 Gbit/s carries."""

_SPEEDS: Mapping[str, float] = {
    "m4": 0.20,
    "m5": 0.25,
    "m6i": 0.30,
    "m7i": 0.35,
    "m6g": 0.30,
    "c6g": 0.30,
    "r6g": 0.30,
    "m7g": 0.40,
    "c7g": 0.40,
    "r7g": 0.40,
    "m8g": 0.45,
}
"""What one vCPU does when all are busy, of the work of the core that was measured, by family. m4: half a Broadwell core
at 2.7 GHz; two threads do about 1.25 times the work of one, the clock is two thirds, and the work a cycle about half:
.21. m7g: a whole Graviton3 core at 2.6 GHz, two thirds of the clock and about two thirds of the work a cycle: .43. The
others by their clocks and generations between these; all rounded down."""
ALONE = 1.6
"""What one busy vCPU does when the others are idle, to what each does when all are busy: two threads share a core."""
_SLOWEST = min(_SPEEDS.values())


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Equal nodes of a cluster, on which the tasks run."""

    instance_type: str
    count: int

    @property
    def cores(self) -> float:
        """Their vCPUs together, as cores of the machine that was measured."""
        return self.count * catalog.find(self.instance_type).vcpu * speed(self.instance_type)

    @property
    def network(self) -> float:
        """MB a second of all of them."""
        return self.count * MB_A_GBIT * catalog.find(self.instance_type).network


@dataclass(frozen=True, kw_only=True)
class Minutes:
    """The minutes of preprocessing by what they are spent on; nothing is taken to overlap."""

    parallel: float
    one_node: float
    network: float
    start: float

    @property
    def all(self) -> float:
        """Their sum."""
        return self.parallel + self.one_node + self.network + self.start


def speed(instance_type: str) -> float:
    """What one of its vCPUs does, of the work of the core that was measured; of an unknown family that of the
    slowest."""
    return _SPEEDS.get(instance_type.partition(".")[0], _SLOWEST)


def predict_preprocessing(primary: str, workers: Sequence[Workers], gigabytes: float, costs: DatasetCosts) -> Minutes:
    """The minutes for so many GB of raw input. Raises TopologyError for an unknown type."""
    seconds = {step: gigabytes * costs.cpu[step] for step in STEPS}
    on_one = sum(seconds[step] for step in _ON_ONE_NODE)
    megabytes = 1000 * gigabytes
    alone = Workers(instance_type=primary, count=1)
    return Minutes(
        parallel=(sum(seconds.values()) - on_one) / (sum(each.cores for each in workers) * _BUSY) / 60,
        one_node=on_one / speed(primary) / 60,
        network=(
            megabytes * costs.traffic / sum(each.network for each in workers)
            + 2 * megabytes * costs.merged / alone.network
        )
        / 60,
        start=_STEP_START_S * len(STEPS) / 60,
    )


def machine_seconds(raw_bytes: float, costs: DatasetCosts, equal_cores: float, alone: float) -> float:
    """The seconds on one machine without Hadoop; `equal_cores`, `alone`: all of its cores together, and one that works
    alone, as cores of the machine that was measured."""
    seconds = {step: raw_bytes / 1e9 * costs.cpu[step] for step in STEPS}
    on_one = sum(seconds[step] for step in _ON_ONE_NODE)
    return (sum(seconds.values()) - on_one) / equal_cores + on_one / alone


def download_seconds(raw_bytes: float, gbits: float) -> float:
    """The seconds that raw input takes from S3 to a machine with such a network."""
    return raw_bytes / 1e6 / (MB_A_GBIT * gbits)


def node_seconds(instance_type: str, raw_bytes: float, costs: DatasetCosts) -> float:
    """The seconds from raw input in S3 to a dataset on a node with GPUs. Raises TopologyError for an unknown type."""
    kind, equal = catalog.find(instance_type), speed(instance_type)
    made = machine_seconds(raw_bytes, costs, kind.vcpu * equal, equal * ALONE)
    return download_seconds(raw_bytes, kind.network) + made
