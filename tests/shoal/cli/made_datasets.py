"""Small datasets with known counts and rows."""

from collections import Counter
from pathlib import Path

import numpy as np

from corpus.counts import final_counts
from corpus.dataset import DatasetWriter, RowBlock, write_dataset
from corpus.dataset_settings import Settings

SETTINGS = Settings(row_length=4, stopwords="none")
WORDS = ["good", "lamp", "bad"]


def rows(*pairs: tuple[list[int], int]) -> RowBlock:
    tokens = np.zeros((len(pairs), 4), np.uint16)
    for place, (row, _) in zip(tokens, pairs, strict=True):
        place[: len(row)] = row
    ratings = np.array([rating for _, rating in pairs], np.uint8)
    lengths = np.array([len(row) for row, _ in pairs], np.uint16)
    return RowBlock(tokens, lengths, (ratings > 3).astype(np.uint8), ratings)


TRAIN, TEST = rows(([2, 3], 5), ([4, 1, 3, 3], 1), ([2], 5)), rows(([3, 4], 2))


def make_dataset(path: Path, kind: str = "whole") -> None:
    """Write a dataset with three training rows and one test row; `part`: a part file, without counts."""
    if kind == "part":
        with DatasetWriter(path, SETTINGS, packed=False) as writer:
            writer.append("train", TRAIN)
            writer.finish(vocabulary=WORDS, stopwords=frozenset(), counts={})
        return
    every = [*TRAIN.ratings.tolist(), *TEST.ratings.tolist()]
    count = len(every)
    flat = Counter(dict.fromkeys(("lines", "texts", "distinct", "lengths.1"), count))
    flat.update(f"codes.{when}.{rating}" for when in ("before", "after") for rating in every)
    flat.update(train=len(TRAIN.labels), test=1, tokens=int(TRAIN.lengths.sum()) + 2)
    flat.update(positive_train=int(TRAIN.labels.sum()), unknown_tokens=1)
    counts = final_counts(
        flat, settings=SETTINGS, positive_from=4, frequent_words=[("good", 2), ("lamp", 2), ("bad", 1)]
    )
    write_dataset(path, train=TRAIN, test=TEST, vocabulary=WORDS, settings=SETTINGS, counts=counts)


def make_texts(path: Path, classes: list[str]) -> None:
    """Write a dataset of whole texts of three classes."""
    texts = RowBlock(
        np.array([2, 3, 4, 1, 3, 3, 2], np.uint16),
        np.array([2, 4, 1]),
        np.arange(3, dtype=np.uint8),
        np.zeros(3, np.uint8),
    )
    settings = Settings(ragged=True, words="tokens", labelled=True, classes=tuple(classes))
    flat = Counter(lines=4, texts=4, distinct=4, train=3, test=1, tokens=9, unknown_tokens=1)
    flat.update({"lengths.1": 1, "lengths.2": 2, "lengths.4": 1})
    flat.update({f"codes.{when}.{label}": 1 + (label == 1) for when in ("before", "after") for label in range(3)})
    counts = final_counts(flat, settings=settings, positive_from=0, frequent_words=[("good", 2)])
    test = RowBlock(np.array([3, 4], np.uint16), np.array([2]), np.ones(1, np.uint8), np.zeros(1, np.uint8))
    write_dataset(path, train=texts, test=test, vocabulary=["good", "\x1b[2j", "("], settings=settings, counts=counts)
