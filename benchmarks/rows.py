"""Datasets for benchmarks of training: random words to measure speed, and generated reviews to learn from."""

from pathlib import Path

import numpy as np

from benchmarks.gpu.rows import ROW_LENGTH, VOCABULARY, row_lengths
from corpus.dataset import RowBlock, write_dataset
from corpus.dataset_settings import REFERENCE, Settings
from corpus.reading.sources import Inputs
from corpus.rules import VALIDATION_SHARE
from jobs.local import preprocess_locally
from shoal.demo.reviews import write_reviews

_BLOCK = 1_000_000


def write_rows(path: Path, training: int, *, vocabulary: int = VOCABULARY) -> None:
    """Write rows of random words, with the lengths of reviews: `training` rows to train on, a twentieth of all rows for
    validation, and 100 test rows. `vocabulary` is the number of different words."""
    rows = int(training / (1 - VALIDATION_SHARE))
    while rows - max(1, int(rows * VALIDATION_SHARE)) < training:
        rows += 1
    write_dataset(
        path,
        train=_rows(rows, vocabulary),
        test=_rows(100, vocabulary),
        vocabulary=[f"w{number}" for number in range(vocabulary)],
        settings=Settings(row_length=ROW_LENGTH, vocabulary_size=vocabulary),
        stopwords=frozenset(),
    )


def learnable_dataset(folder: Path) -> Path:
    """Make a dataset of 20,000 generated reviews with the reference's settings, and return its path."""
    write_reviews(folder / "reviews.json", texts=20_000)
    return Path(
        preprocess_locally(Inputs(files=(str(folder / "reviews.json"),)), str(folder), settings=REFERENCE).dataset
    )


def _rows(count: int, vocabulary: int) -> RowBlock:
    generator = np.random.default_rng(0)
    lengths = row_lengths(generator, count)
    tokens = np.zeros((count, ROW_LENGTH), dtype=np.uint16)
    for start in range(0, count, _BLOCK):
        part = tokens[start : start + _BLOCK]
        words = generator.zipf(1.3, part.shape) % vocabulary + 2
        part[:] = np.where(np.arange(ROW_LENGTH) < lengths[start : start + _BLOCK, None], words, 0)
    labels = generator.integers(0, 2, count).astype(np.uint8)
    return RowBlock(tokens, lengths, labels, 4 * labels + 1)
