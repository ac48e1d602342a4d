"""`python -m benchmarks.fasttext.reading TRAIN TEST FOLDER`: makes the dataset of raw texts, and does nothing else.

`shoal train --input` makes it in the same way; here its time and memory are those of a process.
"""

import sys
from pathlib import Path

from bootstrap.progress import Bars
from bootstrap.training.raw_input import RawTexts, dataset_of_texts
from corpus.reading.sources import Inputs
from corpus.settings import Settings


def read_texts(train: Path, test: Path, folder: Path) -> Path:
    """Make the dataset of two files in a folder; returns its path."""
    texts = RawTexts(
        inputs=Inputs(files=(str(train),), test=(str(test),)),
        settings=Settings(),
        max_malformed=0.0,
        allow_damaged=False,
        output=folder / "model",
    )
    with Bars() as bars:
        return dataset_of_texts(texts, cache=folder, bars=bars)


if __name__ == "__main__":
    read_texts(*map(Path, sys.argv[1:]))
