"""`make bench`, or `python -m benchmarks [NAME...]`: run benchmarks, print their tables, write their records.

Figures of two runs on a shared machine do not compare; those of one run do. So every benchmark interleaves what it
compares, and reports ratios.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from statistics import median
from types import ModuleType

from benchmarks import (
    balance,
    choices,
    growth,
    hdf5,
    large_batch,
    link,
    predicting,
    prediction,
    preprocess,
    quality,
    reading,
    streaming,
    training,
)
from benchmarks.record import KEPT, OWN, Log
from bootstrap.errors import ShoalError
from corpus.errors import DataError
from trainer.errors import TrainingError

TABLES = {"hdf5": hdf5, "streaming": streaming}
"""Each a module with WHAT, FIGURES and measure(run), which returns the figures of every case."""
PROGRAMS = {
    "balance": balance,
    "quality": quality,
    "choices": choices,
    "training": training,
    "reading": reading,
    "link": link,
    "large_batch": large_batch,
    "preprocess": preprocess,
    "growth": growth,
    "prediction": prediction,
    "predict": predicting,
}
"""Each a module with main(arguments), which has options of its own."""
FOR_ROOT = ("link",)
_KEEP = "--keep"


def main(arguments: Sequence[str]) -> None:
    """Run what the command line names; all of them without a name. `--keep` goes with any of them."""
    if _KEEP in arguments:
        Log.folder = KEPT
        arguments = [argument for argument in arguments if argument != _KEEP]
    if arguments and arguments[0] in PROGRAMS:
        PROGRAMS[arguments[0]].main(arguments[1:])
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
        _tabulate(name, TABLES[name], options.runs)
    if not options.names:
        for name, program in PROGRAMS.items():
            if name in FOR_ROOT and os.geteuid() != 0:
                sys.stderr.write(f"{name}: left out, as it needs root\n")
            else:
                program.main([])


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
    except (DataError, ShoalError, TrainingError) as error:
        sys.exit(f"benchmarks: {error}")
