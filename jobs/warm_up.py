"""Runs every job once on a few reviews, to fill numba's cache (NUMBA_CACHE_DIR) and Python's bytecode cache.

`python -m jobs.warm_up` does this when a machine is set up, so that later processes need not compile. Run the jobs; do
not call compiled functions directly, because numba compiles again for arrays of other types.
"""

from dataclasses import replace
from itertools import product
from string import ascii_lowercase

from common.private_folders import temporary_folder
from corpus.dataset_settings import DEFAULT, REFERENCE
from corpus.reading.sources import Inputs
from jobs.local import preprocess_locally

# more words than a dictionary initially has space for
_WORDS = " ".join(map("".join, product(ascii_lowercase, repeat=3)))
_TEXTS = (_WORDS, *(f"word {'of ' * n}other" for n in range(1, 5)))
_REVIEWS = "".join(f'{{"reviewText": "{text}", "overall": {1 + n}}}\n' for n, text in enumerate(_TEXTS))


def main() -> None:
    """Run every job on a few reviews in a temporary folder."""
    with temporary_folder("shoal-warm-up-") as folder:
        reviews = folder / "reviews.json"
        reviews.write_text(_REVIEWS)
        for settings in (REFERENCE, replace(DEFAULT, duplicates=True)):
            preprocess_locally(Inputs(files=(str(reviews),)), f"{folder}/data", settings=settings, force=True)


if __name__ == "__main__":
    main()
