"""Shoal's model of fastText (`--model fasttext`) beside the C++ program.

    python -m benchmarks fasttext [quality | yelp] [OPTIONS OF THE PART]

Without a part all of them run, with their defaults. The program is the library `fasttext` of requirements-bench.txt.
"""

import argparse
from collections.abc import Sequence
from importlib import import_module

PARTS = ("quality", "yelp")
"""Modules of this package with main(arguments), which have options of their own."""


def main(arguments: Sequence[str]) -> None:
    """Run the part that the command line names; all of them without a name."""
    if arguments and arguments[0] in PARTS:
        _run(arguments[0], arguments[1:])
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks fasttext",
        description=__doc__.partition("\n")[0],
        epilog="The parts have options of their own: python -m benchmarks fasttext PART --help.",
    )
    parser.add_argument("part", nargs="?", choices=PARTS, metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.parse_args(arguments)
    for part in PARTS:
        _run(part, [])


def _run(part: str, arguments: Sequence[str]) -> None:
    import_module(f"{__name__}.{part}").main(arguments)
