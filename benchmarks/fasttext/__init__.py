"""Shoal's fastText model (`--model fasttext`) compared with the C++ program.

    python -m benchmarks fasttext [quality | yelp] [OPTIONS OF THE PART]

Without a part all parts run with their defaults. The program is the library `fasttext` of requirements-bench.txt.
"""

from collections.abc import Sequence

from benchmarks.record import run_parts


def main(arguments: Sequence[str]) -> None:
    """Run the named part, or all."""
    run_parts(__name__, {"quality": "quality", "yelp": "yelp"}, arguments, __doc__)
