"""The dataset as the ranks use it: training, validation and test rows in memory, and batches of them.

Every rank holds all training rows: any rank can then take any part of any global batch. The first twentieth of the
training rows is the validation part, kept out of training, because the best epoch is chosen by it.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpus.dataset import Dataset, Split, open_dataset
from corpus.text import FIRST_WORD
from trainer.errors import TrainingError
from trainer.order import IntArray

VALIDATION_SHARE = 0.05


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows on their way into a model, the longest first: `tokens` (n, longest) int32, `lengths` (n,) int64,
    `labels` (n,) float32."""

    tokens: Tensor
    lengths: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """N rows in memory: `tokens` (N, L) ids padded with 0, `lengths` (N,), `labels` (N,)."""

    tokens: npt.NDArray[np.uint16 | np.uint32]
    lengths: npt.NDArray[np.uint16]
    labels: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, part: slice) -> "Rows":
        return Rows(tokens=self.tokens[part], lengths=self.lengths[part], labels=self.labels[part])

    def batch(self, numbers: IntArray, device: torch.device) -> Batch:
        """The rows of these numbers (n,), n > 0, cut to the longest of them."""
        lengths = self.lengths[numbers].astype(np.int64)
        longest_first = np.argsort(-lengths, kind="stable")
        numbers, lengths = numbers[longest_first], lengths[longest_first]
        tokens = self.tokens[numbers, : int(lengths[0])].astype(np.int32)
        return Batch(
            tokens=torch.from_numpy(tokens).to(device, non_blocking=True),
            lengths=torch.from_numpy(lengths).to(device, non_blocking=True),
            labels=torch.from_numpy(self.labels[numbers].astype(np.float32)).to(device, non_blocking=True),
        )

    def ids(self, numbers: IntArray, words: int) -> IntArray:
        """(m,): the ids below `words` that occur in these rows, ascending; 0 is among them when padding is."""
        seen = np.zeros(words, dtype=np.bool_)
        seen[self.tokens[numbers]] = True
        return np.flatnonzero(seen)


@dataclass(frozen=True, kw_only=True)
class Data:
    """What a run learns from and is judged by, and what a model needs to read new texts."""

    training: Rows
    validation: Rows
    test: Rows
    vocabulary: list[str]
    stopwords: frozenset[str]
    row_length: int
    digest: str

    def balancing_weight(self) -> float:
        """The weight of a positive row with which the classes count half-way between as they come and equally: the
        root of negatives / positives. Equal weight finds more of a rare class, and calls too much by its name."""
        positive = int(self.training.labels.sum())
        return math.sqrt((len(self.training) - positive) / positive)


def load(path: Path) -> Data:
    """Read a dataset into memory.

    Raises DataError for a file that is no dataset, and TrainingError for one that nothing can be learnt from: an
    empty split, one class only, ids beyond the vocabulary.
    """
    with open_dataset(path) as dataset:
        training, test = _read(dataset, dataset.train), _read(dataset, dataset.test)
        held_out = max(1, int(len(training) * VALIDATION_SHARE))
        learnt = training[held_out:]
        for label, name in enumerate(("negative", "positive")):
            if not (learnt.labels == label).any():
                raise TrainingError(f"{path}: there is no {name} training row; a classifier needs both classes")
        return Data(
            training=learnt,
            validation=training[:held_out],
            test=test,
            vocabulary=dataset.vocabulary,
            stopwords=dataset.stopwords,
            row_length=dataset.settings.row_length,
            digest=dataset.digest,
        )


def _read(dataset: Dataset, split: Split) -> Rows:
    where = f"{dataset.path}: /{split.name}"
    if len(split) < 2:
        raise TrainingError(f"{where} has {len(split)} rows, too few to learn from or judge by; preprocess more texts")
    rows = Rows(tokens=split.tokens[:], lengths=split.lengths[:], labels=split.labels[:])
    ids = len(dataset.vocabulary) + FIRST_WORD
    if int(rows.tokens.max()) >= ids:
        raise TrainingError(
            f"{where}/tokens has an id of {int(rows.tokens.max())}, but the vocabulary ends at {ids - 1}; "
            "the file is damaged, so make it again by `shoal preprocess`"
        )
    if not 1 <= int(rows.lengths.min()) <= int(rows.lengths.max()) <= dataset.settings.row_length:
        raise TrainingError(f"{where}/lengths has lengths that no row can have; make the file by `shoal preprocess`")
    return rows
