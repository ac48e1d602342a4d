"""`make bench`, or `python -m benchmarks [NAME]`: run benchmarks, print their tables, write their records.

On a shared machine, compare figures only within one run. So every benchmark interleaves its cases and reports ratios.
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
    *("fasttext quality", "fasttext yelp", "embeddings gensim", "embeddings modes", "gpu"),
)
"""Modules with main(arguments) and their own options. A space separates a package from its module."""
_KEEP = "--keep"


def main(arguments: Sequence[str]) -> None:
    """Run the named benchmark, or all. `--keep` works with each of them."""
    if _KEEP in arguments:
        Log.folder = KEPT
        arguments = [argument for argument in arguments if argument != _KEEP]
    for name in PROGRAMS:
        count = len(name.split())
        if " ".join(arguments[:count]) == name:
            _module(name).main(arguments[count:])
            return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__.partition("\n")[0],
        epilog="For the options of a benchmark: python -m benchmarks NAME --help. Records are written to "
        f"{OWN}/. With {_KEEP}, they replace the records that the documents quote.",
    )
    parser.add_argument(
        "name", nargs="?", choices=PROGRAMS, metavar="NAME", help=f"{', '.join(PROGRAMS)} (default: all)"
    )
    parser.parse_args(arguments)
    for name in PROGRAMS:
        _module(name).main([])


def _module(name: str) -> ModuleType:
    """Import and return the module of a benchmark. Import it late: its packages may be missing for other benchmarks."""
    return import_module(f"benchmarks.{name.replace(' ', '.')}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (DataError, ExperimentError, ShoalError, TopologyError, TrainingError) as error:
        sys.exit(f"benchmarks: {error}")
