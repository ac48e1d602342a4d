"""Shoal's models of words beside gensim's word2vec, and the ways in which ranks learn together.

    python -m benchmarks embeddings [gensim | modes] [OPTIONS OF THE PART]

Without a part both run, with their defaults, on text that is generated.
"""

from collections.abc import Sequence

from benchmarks.record import run_parts


def main(arguments: Sequence[str]) -> None:
    """Run the part that the command line names; all of them without a name."""
    run_parts(__name__, {"gensim": "gensim_part", "modes": "modes_part"}, arguments, __doc__)
