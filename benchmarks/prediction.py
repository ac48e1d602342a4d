"""What the reference's 92.45 GB would take on its clusters, by rates measured here; beside its own minutes.

    python -m benchmarks prediction [--gb 0.25 1 3] [--runs 3] [--whole-texts]

Only the CPU time of each step is measured, on the embedded Hadoop Streaming (`benchmarks.streaming`), for several sizes
of input; its slope is used. All else is assumed (experiments/forecast/preprocessing.py), and nothing was measured on
AWS. Do not use the rate of one size for a hundred times the size, because half of it is the start of processes.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import streaming
from benchmarks.fitting import fit_line
from benchmarks.generated import write_reviews
from benchmarks.record import Log
from corpus.dataset_settings import DEFAULT, REFERENCE, Settings
from corpus.reading.sources import Inputs
from experiments.forecast.preprocessing import REFERENCE as REFERENCE_COSTS
from experiments.forecast.preprocessing import STEPS, WHOLE_TEXTS, Minutes, Workers, predict_preprocessing
from experiments.reference import PREPROCESSING, RAW_GB

SHARES = (0.25, 0.5, 1.0)
CLUSTERS = (("m4.xlarge", 2), ("m4.xlarge", 4), ("m4.xlarge", 8), ("m7g.xlarge", 8))
"""Types of the workers, and their number; the primary node has the same type."""


def step_costs(gigabytes: float, seed: int, settings: Settings) -> dict[str, float]:
    """CPU-seconds of each step for a generated file of so many GB."""
    with TemporaryDirectory() as name:
        source = Path(name) / "reviews.json"
        write_reviews(source, int(gigabytes * 1e9), seed)
        plan = streaming.planned(Inputs(files=(str(source),)), name, settings=settings)
        costs = streaming.StreamingNode(Path(name) / "node").run(plan)
    return {step: cost.cpu for step, cost in costs.items()}


def main(arguments: Sequence[str]) -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks prediction", description=__doc__.partition("\n")[0])
    parser.add_argument("--gb", type=float, nargs="+", default=[0.25, 1, 3], help="sizes in GB, two at least")
    parser.add_argument("--runs", type=int, default=3, help="runs of each size (default: %(default)s)")
    parser.add_argument("--whole-texts", action="store_true", help="rows as by default, in place of the reference's")
    options = parser.parse_args(arguments)
    settings, known = (DEFAULT, WHOLE_TEXTS) if options.whole_texts else (REFERENCE, REFERENCE_COSTS)
    if len(set(options.gb)) < 2:
        parser.error("--gb needs at least two sizes, because a line is drawn through them")
    log = Log("prediction")
    step_costs(0.002, 0, settings)  # compiles what is compiled once
    points = [(size, step_costs(size, run, settings)) for run in range(options.runs) for size in options.gb]
    lines = {step: fit_line([size for size, _ in points], [costs[step] for _, costs in points]) for step in STEPS}
    log.table(
        ["step", "CPU s fixed", "CPU s a GB", "residuals"],
        [[step, f"{line.start:.2f}", f"{line.slope:.2f}", line.scatter] for step, line in lines.items()],
    )
    cpu = {step: max(line.slope, 0.0) for step, line in lines.items()}

    costs = replace(known, cpu=cpu)

    def minutes(kind: str, nodes: int, share: float) -> Minutes:
        return predict_preprocessing(kind, [Workers(instance_type=kind, count=nodes)], share * RAW_GB, costs)

    rows = []
    for share in SHARES:
        row = [f"{share:.0%}"]
        for kind, nodes in CLUSTERS:
            before = f" ({PREPROCESSING[share, nodes] or 'failed'})" if kind == "m4.xlarge" else ""
            row.append(f"{minutes(kind, nodes, share).all:.1f}{before}")
        rows.append(row)
    log.table([f"share of {RAW_GB} GB", *(f"{nodes} x {kind}" for kind, nodes in CLUSTERS)], rows)
    log.say("Minutes predicted, and in brackets the reference's own.")
    whole = {f"{nodes} x {kind}": minutes(kind, nodes, 1.0) for kind, nodes in CLUSTERS}
    parts = ("parallel", "one_node", "network", "start")
    log.table(
        ["minutes of 100%", "on all vCPUs", "on one node", "network", "starting steps"],
        [[name, *(f"{getattr(spent, part):.1f}" for part in parts)] for name, spent in whole.items()],
    )
    log.keep(
        {
            "points": [{"gb": size, "cpu": costs} for size, costs in points],
            "cpu_a_gb": cpu,
            "minutes": {name: vars(spent) for name, spent in whole.items()},
        }
    )
