"""`make bench`, or `python -m benchmarks [NAME...]`: run benchmarks, print their tables, keep their records.

Figures of two runs on a shared machine do not compare; those of one run do. So every benchmark interleaves what it
compares, and reports ratios.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path
from statistics import median

from tabulate import tabulate

from benchmarks import balance, preprocess

BENCHMARKS = {"preprocess": preprocess, "balance": balance}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run what the command line names; all of them without a name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--runs", type=int, default=3, help="repeats, interleaved (default: %(default)s)")
    args = parser.parse_args()
    for name in args.names or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        runs = [benchmark.measure(run) for run in range(args.runs)]
        rows = [
            [case, *(f"{median(run[case][figure] for run in runs):.3g}" for figure in benchmark.FIGURES)]
            for case in runs[0]
        ]
        print(f"\n{name}: {benchmark.WHAT} (median of {args.runs} runs)\n")  # noqa: T201
        print(tabulate(rows, headers=["case", *benchmark.FIGURES], tablefmt="github"))  # noqa: T201
        record = {
            "what": benchmark.WHAT,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()},
            "python": platform.python_version(),
            "runs": runs,
        }
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
