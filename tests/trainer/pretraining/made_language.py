"""Texts that a language model can learn: each word is one of two that follow from the word before it."""

from pathlib import Path
from typing import Any

import numpy as np

from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from corpus.layout import RowBlock

WORDS = [f"w{number}" for number in range(24)]


def texts(count: int, *, seed: int = 0, most: int = 40) -> list[list[int]]:
    """The numbers of the words of some texts."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        word = int(generator.integers(len(WORDS)))
        text = [word]
        for _ in range(int(generator.integers(1, most))):
            word = (5 * word + (1 if generator.random() < 0.2 else 3)) % len(WORDS)
            text.append(word)
        found.append(text)
    return found


def rows(numbers: list[list[int]]) -> RowBlock:
    """The rows of texts; the label is whether the last word is one of the first half."""
    labels = np.array([text[-1] < len(WORDS) // 2 for text in numbers], np.uint8)
    return RowBlock(
        tokens=np.concatenate([np.array(text, np.uint32) + 2 for text in numbers]),
        lengths=np.array([len(text) for text in numbers], np.uint32),
        labels=labels,
        ratings=np.zeros(len(numbers), np.uint8),
    )


def dataset(path: Path, *, training: int = 400, vocabulary: list[str] | None = None, **settings: Any) -> Path:
    """A dataset of such texts."""
    known = {"ragged": True, "words": "tokens", "stopwords": "none", "labelled": True, "vocabulary_size": 2_000_000}
    write_dataset(
        path,
        settings=Settings(**{**known, **settings}),
        train=rows(texts(training)),
        test=rows(texts(60, seed=1)),
        vocabulary=vocabulary or WORDS,
    )
    return path
