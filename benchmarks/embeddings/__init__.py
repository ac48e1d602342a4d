"""Shoal's models of words beside gensim's word2vec, the ways in which ranks learn together, finite and
endless sources, and what links cost.

    python -m benchmarks embeddings [gensim | modes | sources | link] [OPTIONS OF THE PART]

Without a part all of them run, with their defaults, on text that is generated.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

PARTS = ("gensim", "modes", "sources", "link")
"""Modules of this package with main(arguments), which have options of their own."""
_FOR_ROOT = "link"


def main(arguments: Sequence[str]) -> None:
    """Run the part that the command line names; all of them without a name."""
    if arguments and arguments[0] in PARTS:
        _run(arguments[0], arguments[1:])
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks embeddings",
        description=__doc__.partition("\n")[0],
        epilog="The parts have options of their own: python -m benchmarks embeddings PART --help.",
    )
    parser.add_argument("part", nargs="?", choices=PARTS, metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.parse_args(arguments)
    for part in PARTS:
        if part == _FOR_ROOT and os.geteuid() != 0:
            sys.stderr.write(f"embeddings {part}: left out, because it needs root\n")
        else:
            _run(part, [])


def _run(part: str, arguments: Sequence[str]) -> None:
    import_module(f"{__name__}.{part}_part").main(arguments)
