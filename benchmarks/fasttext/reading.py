"""`python -m benchmarks.fasttext.reading TRAIN TEST FOLDER`: make the dataset of raw texts like `shoal train --input`.

A separate process, so that its time and memory can be measured.
"""

import sys
from pathlib import Path

from bootstrap.progress import Bars
from bootstrap.training.sources.texts import TextsSource, dataset_of_texts
from corpus.dataset_settings import Settings
from corpus.reading.sources import Inputs


def read_texts(train: Path, test: Path, folder: Path) -> Path:
    """Make the dataset of two files in a folder, and return its path."""
    inputs = Inputs(files=(str(train),), test=(str(test),))
    with Bars() as bars:
        texts = TextsSource(inputs=inputs, settings=Settings(), max_malformed=0.0)
        return dataset_of_texts(texts, output=folder / "model", cache=folder, bars=bars)


if __name__ == "__main__":
    read_texts(*map(Path, sys.argv[1:]))
