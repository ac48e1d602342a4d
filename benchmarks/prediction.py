"""What the reference's 92.45 GB would take on its clusters, by rates measured here; beside its own minutes.

    python -m benchmarks prediction [--gb 0.25 1 3] [--runs 3]

Only the CPU time of each step is measured, on the embedded Hadoop Streaming (`benchmarks.streaming`), for several sizes
of input; its slope is used. All else is an assumption, named below and chosen on the slow side. Nothing was measured on
AWS. Do not use the rate of one size for a hundred times the size, because half of it is the start of processes. Do not
divide everything by the number of nodes, because the merge and the choice of the vocabulary run on one.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import streaming
from benchmarks.fitting import fit_line
from benchmarks.generated import write_reviews
from benchmarks.record import Log
from corpus.reading.sources import Inputs

REFERENCE_GB = 92.45
SHARES = (0.25, 0.5, 1.0)
# Minutes by share and nodes (m4.xlarge), from the reference's table; None where it failed.
REFERENCE_MINUTES: Mapping[tuple[float, int], float | None] = {
    (0.25, 2): 99, (0.25, 4): 28, (0.25, 8): 14,
    (0.5, 2): None, (0.5, 4): 51, (0.5, 8): 30,
    (1.0, 2): None, (1.0, 4): None, (1.0, 8): 55,
}  # fmt: skip

_ON_ONE_NODE = ("choose vocabulary", "merge")
_STEPS = ("deduplicate", "count words", "choose vocabulary", "encode", "merge")
_STEP_START_S = 30.0
"""From one step's end to the first task of the next: EMR's polling, YARN's application master, a JVM a task."""
_BUSY = 0.8
"""The share of the vCPUs' time that tasks have: the rest is Hadoop's own, stragglers, and the last wave."""
_TRAFFIC = 1.7
"""Bytes through the nodes' network a byte of raw input: it is read and shuffled; side files and parts are written and
read."""
_MERGED = 0.14
"""Bytes of the dataset a byte of raw input; the primary node reads and writes them once."""


@dataclass(frozen=True, kw_only=True)
class InstanceRates:
    """The rates of an instance type.

    speed: of one vCPU when all are busy, to a core of the machine that measured (Zen 5 at 4.0 GHz, one thread a core).
        m4: half a Broadwell core at 2.7 GHz with all cores busy; two threads do about 1.25 times the work of one, the
        clock is two thirds, and the work a cycle about half: .21. m7g: a whole Graviton3 core at 2.6 GHz, two thirds
        of the clock and about two thirds of the work a cycle: .43. Both rounded down.
    network_mb: MB a second of a node, sustained (m4.xlarge: "high", taken as its documented 750 Mbit/s to EBS;
        m7g.xlarge: its documented baseline of 1.876 Gbit/s).
    """

    name: str
    vcpus: int
    speed: float
    network_mb: float


M4 = InstanceRates(name="m4.xlarge", vcpus=4, speed=0.20, network_mb=90)
M7G = InstanceRates(name="m7g.xlarge", vcpus=4, speed=0.40, network_mb=230)
CLUSTERS = ((M4, 2), (M4, 4), (M4, 8), (M7G, 8))


@dataclass(frozen=True, kw_only=True)
class Minutes:
    """The minutes of a run by what they are spent on; nothing is taken to overlap."""

    parallel: float
    one_node: float
    network: float
    start: float

    @property
    def all(self) -> float:
        """Their sum."""
        return self.parallel + self.one_node + self.network + self.start


def predict(kind: InstanceRates, nodes: int, gigabytes: float, cpu: Mapping[str, float]) -> Minutes:
    """The minutes for so many GB of raw input; `cpu` is CPU-seconds a GB here, by step."""
    seconds = {step: gigabytes * cpu[step] / kind.speed for step in _STEPS}
    on_one = sum(seconds[step] for step in _ON_ONE_NODE)
    return Minutes(
        parallel=(sum(seconds.values()) - on_one) / (nodes * kind.vcpus * _BUSY) / 60,
        one_node=on_one / 60,
        network=1000 * gigabytes * (_TRAFFIC / nodes + 2 * _MERGED) / kind.network_mb / 60,
        start=_STEP_START_S * len(_STEPS) / 60,
    )


def step_costs(gigabytes: float, seed: int) -> dict[str, float]:
    """CPU-seconds of each step for a generated file of so many GB."""
    with TemporaryDirectory() as name:
        source = Path(name) / "reviews.json"
        write_reviews(source, int(gigabytes * 1e9), seed)
        plan = streaming.planned(Inputs(files=(str(source),)), name)
        costs = streaming.StreamingNode(Path(name) / "node").run(plan)
    return {step: cost.cpu for step, cost in costs.items()}


def main(arguments: Sequence[str]) -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks prediction", description=__doc__.partition("\n")[0])
    parser.add_argument("--gb", type=float, nargs="+", default=[0.25, 1, 3], help="sizes in GB, two at least")
    parser.add_argument("--runs", type=int, default=3, help="runs of each size (default: %(default)s)")
    options = parser.parse_args(arguments)
    if len(set(options.gb)) < 2:
        parser.error("--gb needs at least two sizes, because a line is drawn through them")
    log = Log("prediction")
    step_costs(0.002, 0)  # compiles what is compiled once
    points = [(size, step_costs(size, run)) for run in range(options.runs) for size in options.gb]
    lines = {step: fit_line([size for size, _ in points], [costs[step] for _, costs in points]) for step in _STEPS}
    log.table(
        ["step", "CPU s fixed", "CPU s a GB", "residuals"],
        [[step, f"{line.start:.2f}", f"{line.slope:.2f}", line.scatter] for step, line in lines.items()],
    )
    cpu = {step: max(line.slope, 0.0) for step, line in lines.items()}
    rows = []
    for share in SHARES:
        row = [f"{share:.0%}"]
        for kind, nodes in CLUSTERS:
            minutes = f"{predict(kind, nodes, share * REFERENCE_GB, cpu).all:.1f}"
            before = f" ({REFERENCE_MINUTES[share, nodes] or 'failed'})" if kind is M4 else ""
            row.append(minutes + before)
        rows.append(row)
    log.table([f"share of {REFERENCE_GB} GB", *(f"{nodes} x {kind.name}" for kind, nodes in CLUSTERS)], rows)
    log.say("Minutes predicted, and in brackets the reference's own.")
    whole = {f"{nodes} x {kind.name}": predict(kind, nodes, REFERENCE_GB, cpu) for kind, nodes in CLUSTERS}
    parts = ("parallel", "one_node", "network", "start")
    log.table(
        ["minutes of 100%", "on all vCPUs", "on one node", "network", "starting steps"],
        [[name, *(f"{getattr(minutes, part):.1f}" for part in parts)] for name, minutes in whole.items()],
    )
    log.keep(
        {
            "points": [{"gb": size, "cpu": costs} for size, costs in points],
            "cpu_a_gb": cpu,
            "minutes": {name: vars(minutes) for name, minutes in whole.items()},
        }
    )
