"""Every job once, on a few reviews: `python -m jobs.warm_up`, when a machine is set up.

What numba compiles then lies in NUMBA_CACHE_DIR, and Python's bytecode beside the code, instead of being made anew by
each task. The easy mistake is to call compiled functions by hand: for other types of arrays they are compiled again.
"""

import tempfile
from itertools import product
from pathlib import Path
from string import ascii_lowercase

from corpus.reading.sources import Inputs
from jobs.pipeline import preprocess_locally

_WORDS = " ".join(map("".join, product(ascii_lowercase, repeat=3)))  # more than a dictionary begins with room for
_TEXTS = (_WORDS, *(f"word {'of ' * n}other" for n in range(1, 5)))
_REVIEWS = "".join(f'{{"reviewText": "{text}", "overall": {1 + n}}}\n' for n, text in enumerate(_TEXTS))


def main() -> None:
    """Preprocess the reviews, and keep nothing of what comes of them."""
    with tempfile.TemporaryDirectory(prefix="shoal-warm-up-") as folder:
        reviews = Path(folder, "reviews.json")
        reviews.write_text(_REVIEWS)
        preprocess_locally(Inputs(files=(str(reviews),)), f"{folder}/data", runner="inline")


if __name__ == "__main__":
    main()
