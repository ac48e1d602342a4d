"""Shoal's word embeddings compared with gensim's word2vec, and the modes in which ranks learn together.

    python -m benchmarks embeddings [gensim | modes] [OPTIONS OF THE PART]

Without a part both run, with their defaults, on generated text.
"""

from collections.abc import Sequence

from benchmarks.record import run_parts


def main(arguments: Sequence[str]) -> None:
    """Run the named part, or all."""
    run_parts(__name__, {"gensim": "gensim_part", "modes": "modes_part"}, arguments, __doc__)
