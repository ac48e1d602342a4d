"""`make bench`, or `python -m benchmarks [NAME]`: run benchmarks, print their tables, write their records.

On a shared machine figures of two runs cannot be compared; those of one run can. So every benchmark interleaves what it
compares, and reports ratios.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from benchmarks.record import KEPT, OWN, Log
from common.errors import DataError, ExperimentError, ShoalError, TrainingError
from infra.topology_error import TopologyError

PROGRAMS = (
    *("balance", "training", "large_batch", "preprocess"),
    *("fasttext", "embeddings", "downstream", "gpu"),
)
"""Modules with main(arguments), which have options of their own."""
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
        epilog="Each has options of its own: python -m benchmarks NAME --help. Records go to "
        f"{OWN}/; with {_KEEP}, which goes with any of them, they replace those that the documents quote.",
    )
    parser.add_argument(
        "name", nargs="?", choices=PROGRAMS, metavar="NAME", help=f"{', '.join(PROGRAMS)} (default: all)"
    )
    parser.parse_args(arguments)
    for name in PROGRAMS:
        _module(name).main([])


def _module(name: str) -> ModuleType:
    """The module of a benchmark, imported when it is run: none may need what only another one needs."""
    return import_module(f"benchmarks.{name}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (DataError, ExperimentError, ShoalError, TopologyError, TrainingError) as error:
        sys.exit(f"benchmarks: {error}")
