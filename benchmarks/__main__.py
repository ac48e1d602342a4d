"""`make bench`, or `python -m benchmarks [NAME...]`: run benchmarks, print their tables, write their records.

On a shared machine figures of two runs cannot be compared; those of one run can. So every benchmark interleaves what it
compares, and reports ratios.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from statistics import median
from types import ModuleType

from benchmarks.record import KEPT, OWN, Log
from common.errors import DataError, ExperimentError, ShoalError, TrainingError
from infra.topology_error import TopologyError

TABLES = ("hdf5", "streaming")
"""Modules of this package with WHAT, FIGURES and measure(run), which returns the figures of every case."""
PROGRAMS = (
    *(
        "balance",
        "balance_any",
        "quality",
        "choices",
        "training",
        "reading",
        "large_batch",
        "preprocess",
        "regression",
    ),
    *(
        "growth",
        "predict",
        "fasttext",
        "embeddings",
        "downstream",
        "growing",
        "report",
        "faults",
        "agents",
        "goodput",
    ),
    *("mutants", "gpu"),
)
"""Modules with main(arguments), which have options of their own."""
FOR_ROOT = ("faults",)
_KEEP = "--keep"


def main(arguments: Sequence[str]) -> None:
    """Run what the command line names; all of them without a name. `--keep` goes with any of them."""
    if _KEEP in arguments:
        Log.folder = KEPT
        arguments = [argument for argument in arguments if argument != _KEEP]
    if arguments and arguments[0] in PROGRAMS:
        _module(arguments[0]).main(arguments[1:])
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__.partition("\n")[0],
        epilog=f"{', '.join(PROGRAMS)} have options of their own: python -m benchmarks NAME --help. Records go to "
        f"{OWN}/; with {_KEEP}, which goes with any of them, they replace those that the documents quote.",
    )
    parser.add_argument("names", nargs="*", choices=[[], *TABLES], metavar="NAME", help=", ".join([*TABLES, *PROGRAMS]))
    parser.add_argument("--runs", type=int, default=3, help="repeats (default: %(default)s)")
    options = parser.parse_args(arguments)
    for name in options.names or TABLES:
        _tabulate(name, _module(name), options.runs)
    if not options.names:
        for name in PROGRAMS:
            if name in FOR_ROOT and os.geteuid() != 0:
                sys.stderr.write(f"{name}: left out, because it needs root\n")
            else:
                _module(name).main([])


def _module(name: str) -> ModuleType:
    """The module of a benchmark, imported when it is run: none may need what only another one needs."""
    return import_module(f"benchmarks.{name}")


def _tabulate(name: str, benchmark: ModuleType, repeats: int) -> None:
    log = Log(name)
    runs = [benchmark.measure(run) for run in range(repeats)]
    log.say(f"{benchmark.WHAT} (median of {repeats} runs)")
    rows = [
        [case, *(f"{median(run[case][figure] for run in runs):.3g}" for figure in benchmark.FIGURES)]
        for case in runs[0]
    ]
    log.table(["case", *benchmark.FIGURES], rows)
    log.keep({"what": benchmark.WHAT, "runs": runs})


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (DataError, ExperimentError, ShoalError, TopologyError, TrainingError) as error:
        sys.exit(f"benchmarks: {error}")
