"""Shoal's model of fastText (`--model fasttext`) beside the C++ program.

    python -m benchmarks fasttext [quality | yelp] [OPTIONS OF THE PART]

Without a part all of them run, with their defaults. The program is the library `fasttext` of requirements-bench.txt.
"""

from collections.abc import Sequence

from benchmarks.record import run_parts


def main(arguments: Sequence[str]) -> None:
    """Run the part that the command line names; all of them without a name."""
    run_parts(__name__, {"quality": "quality", "yelp": "yelp"}, arguments, __doc__)
