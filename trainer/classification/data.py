"""Dataset of a classifier: training, validation and test rows.

Every rank has all training rows, in memory or on its machine's disk, so that any rank can compute any part of any
global batch. The first twentieth of the training rows is the validation part. It is not trained on: it measures the
model after each epoch, and settings are chosen by it. Libraries for reading files are imported only when rows come from
a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from shoal_balance import IntArray

from common.display import plural
from common.errors import DataError, TrainingError
from common.private_folders import make_users_folder
from corpus.layout import MAX_ROW_WORDS, MIN_ROWS, SPLITS, RowBlock
from corpus.rules import VALIDATION_SHARE
from corpus.text import FIRST_WORD
from trainer.classification.losses import Scale
from trainer.classification.mapped import map_rows
from trainer.classification.rows import Labels, RaggedRows, Rows, TextRows

if TYPE_CHECKING:
    from corpus.dataset import Dataset, Split

_COUNTED = 1 << 20  # labels counted at once
_EVALUATION_MEMORY_SHARE = 0.1
"""Largest share of a GPU's free memory for the validation rows, and then for the test rows."""


class StartVectors(NamedTuple):
    ids: npt.NDArray[np.int64]
    """(n,)"""
    vectors: npt.NDArray[np.float32]
    """(n, size)"""
    note: str = ""
    """Note for the user about omitted words of the file."""


class WeightedNgrams(NamedTuple):
    """N-grams: their `keys` (k,) int64, ascending, and their `ratios` (k,) float32.

    The first key is a sentinel for unknown n-grams, with ratio 0.
    """

    keys: IntArray
    ratios: npt.NDArray[np.float32]
    longest: int
    """Number of words of the longest row in which they were counted."""


@dataclass(frozen=True, kw_only=True)
class TextData:
    """Rows of a run, and the settings that a model needs to read new texts."""

    training: Rows
    validation: Rows
    test: Rows
    vocabulary: list[str]
    stopwords: frozenset[str]
    row_length: int
    """Largest number of words of a row in a padded batch."""
    scale: Scale
    rating_steps: int
    """Steps of the scale per star: 2 if there are half stars."""
    rating_fraction: bool
    """True if ratings can also be written as fractions of the largest rating."""
    digest: str
    words: str = "letters"
    """Tokenisation rule of the texts (corpus/dataset_settings.py)."""
    classes: tuple[str, ...] = ()
    """Class names by label if there are more than two classes, else empty."""
    start: StartVectors | None = None
    """Pretrained vectors, on the first rank of a new run; the other ranks receive its model."""
    ngrams: WeightedNgrams | None = None
    """N-grams of the training rows, for a new run of the linear model."""

    @property
    def sizes(self) -> dict[str, int]:
        """The number of rows in each part."""
        return {"training": len(self.training), "validation": len(self.validation), "test": len(self.test)}

    def cut_to(self, words: int) -> Self:
        """Return the data with ragged rows cut to `words` words in padded batches; fixed rows are already cut."""
        if not isinstance(self.training, RaggedRows):
            return self
        parts = {part: replace(getattr(self, part), row_length=words) for part in self.sizes}
        return replace(self, row_length=words, **parts)

    def balancing_weight(self) -> float:
        """Return the default weight of a positive row: the fourth root of negatives / positives.

        It lies between unweighted classes and classes of equal weight, nearer to the first. Equal weights find more
        rows of a rare class, but predict it too often. Without weights, it is hardly ever predicted.
        """
        positive = int(self.training.labels.sum())
        return math.sqrt(math.sqrt((len(self.training) - positive) / positive))


def load_data(
    path: Path,
    *,
    learnt: Callable[[int], int] = lambda every: every,
    rows_in: str = "memory",
    cache: Path | None = None,
    memory: int = 0,
) -> TextData:
    """Read a dataset into memory, or map it from `cache` on this machine's disk (mapped.py).

    `learnt`: maps the number of training rows to the number to train on. `rows_in`: `disk`; `auto`, which uses the disk
    if the rows would fill more than half of `memory`, the free bytes of this rank; `memory`; or `device`
    (`place_rows`).

    Raises DataError if the file is not a dataset. Raises TrainingError if training on it is impossible: an empty split,
    a class without rows, or ids beyond the vocabulary.
    """
    from corpus.dataset import open_dataset

    with open_dataset(path) as dataset:
        for split in (dataset.train, dataset.test):
            if len(split) < MIN_ROWS:
                raise TrainingError(
                    f"{path}: /{split.name} has {plural(len(split), 'row')}, too few to train or evaluate on; "
                    "preprocess more texts"
                )
        if rows_in == "disk" or (rows_in == "auto" and _bytes(dataset) > memory / 2):
            training, test = _mapped(dataset, cache)
        else:
            try:
                training, test = (_read(dataset, split) for split in (dataset.train, dataset.test))
            except MemoryError:
                raise TrainingError(
                    f"{path}: its rows, {_bytes(dataset):,} bytes, do not fit into this machine's memory; "
                    "use --rows-in disk, or fewer ranks"
                ) from None
        held_out = max(1, int(len(training) * VALIDATION_SHARE))
        rows = training[held_out:]
        rows = take_rows(rows, learnt(len(rows)))
        _require_classes(dataset, rows.labels)
        return TextData(
            training=rows,
            validation=training[:held_out],
            test=test,
            vocabulary=dataset.vocabulary,
            stopwords=dataset.stopwords,
            row_length=dataset.settings.padded_length,
            scale=_scale(dataset),
            rating_steps=dataset.settings.rating_steps,
            rating_fraction=dataset.settings.rating_fraction,
            digest=dataset.digest,
            words=dataset.settings.words,
            classes=dataset.settings.classes,
        )


def place_parts(data: TextData, device: torch.device, *, rows_in: str) -> TextData:
    """Return `data` with its training rows placed by `place_rows`, and the other rows on a GPU if they need little
    memory."""
    training = place_rows(data.training, device, rows_in=rows_in)

    def near(rows: Rows) -> Rows:
        if rows.tokens is training.tokens:
            return replace(rows, device_tokens=training.device_tokens)
        return place_rows(
            rows, device, rows_in="auto" if rows_in == "device" else rows_in, share=_EVALUATION_MEMORY_SHARE
        )

    return replace(data, training=training, validation=near(data.validation), test=near(data.test))


def place_rows(rows: Rows, device: torch.device, *, rows_in: str, share: float = 0.5) -> Rows:
    """Return `rows`, with a copy of their tokens on `device` if `rows_in` asks for it.

    `rows_in`: `device` always copies; `auto` copies to a GPU if the tokens fill at most `share` of its free memory.
    Raises TrainingError if they do not fit.
    """
    if rows.device_tokens is not None:
        return rows
    if rows_in == "auto" and device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return rows.copy_to(device) if rows.tokens.nbytes <= share * free else rows
    if rows_in != "device":
        return rows
    try:
        return rows.copy_to(device)
    except torch.OutOfMemoryError:
        raise TrainingError(
            f"{rows.tokens.nbytes:,} bytes of rows do not fit on {device}; leave out --rows-in"
        ) from None


def default_cache() -> Path:
    """Return the default folder for unpacked rows, one per user. Raises DataError if it is unsafe or not writable."""
    try:
        return make_users_folder("rows", "name another folder by --cache")
    except OSError as error:
        raise DataError(f"cannot make {error.filename}: {error.strerror}; name another folder by --cache") from error


def take_rows(rows: Rows, count: int) -> Rows:
    """Return `count` of the rows.

    Fixed rows are in the order of their digests, so the first ones are a random sample. Ragged rows may be in input
    order, so they are taken at equal distances.
    """
    if isinstance(rows, RaggedRows) and count < len(rows):
        return rows.chosen((np.arange(count) * (len(rows) / count)).astype(np.int64))
    return rows[:count]


def _scale(dataset: Dataset) -> Scale:
    settings = dataset.settings
    return Scale(0, 1, 1) if settings.labelled else Scale(*settings.rating_range, settings.positive_from)


def _bytes(dataset: Dataset) -> int:
    arrays = (array for split in (dataset.train, dataset.test) for array in split.arrays.values())
    return sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays)


def _mapped(dataset: Dataset, cache: Path | None) -> tuple[Rows, Rows]:
    try:
        arrays = map_rows(dataset, cache or default_cache(), partial(_check, dataset))
    except OSError as error:
        raise TrainingError(
            f"cannot write to {error.filename or cache}: {error.strerror}; choose another --cache"
        ) from error
    training, test = (_rows(dataset, arrays[split]) for split in SPLITS)
    return training, test


def _read(dataset: Dataset, split: Split) -> Rows:
    rows = split.rows(0, len(split))
    _check(dataset, split.name, rows)
    return _rows(dataset, rows.stored(0))


def _rows(dataset: Dataset, arrays: dict[str, npt.NDArray[Any]]) -> Rows:
    if dataset.settings.labelled:
        arrays["ratings"] = arrays["labels"]
    if not dataset.settings.ragged:
        return TextRows(**arrays, device_tokens=None)
    lengths = np.diff(arrays["ends"], prepend=0).astype(np.uint32)
    return RaggedRows(**arrays, lengths=lengths, row_length=dataset.settings.padded_length, device_tokens=None)


def _require_classes(dataset: Dataset, labels: Labels) -> None:
    """Raise TrainingError unless each class has a training row."""
    classes = dataset.settings.class_count
    rows = np.zeros(classes, np.int64)
    for start in range(0, len(labels), _COUNTED):
        rows += np.bincount(labels[start : start + _COUNTED], minlength=classes)
    if rows.all():
        return
    missing = int(np.argmin(rows))
    if dataset.settings.classes:
        raise TrainingError(
            f"{dataset.path}: there is no training row of the class {dataset.settings.classes[missing]}; "
            "preprocess more texts of it, or leave it out"
        )
    name = ("negative", "positive")[missing]
    raise TrainingError(f"{dataset.path}: there is no {name} training row; a classifier needs both classes")


def _check(dataset: Dataset, split: str, rows: RowBlock) -> None:
    """Raise TrainingError for rows that `shoal preprocess` cannot have written."""
    where = f"{dataset.path}: /{split}"
    ids = len(dataset.vocabulary) + FIRST_WORD
    if int(rows.tokens.max()) >= ids:
        raise TrainingError(
            f"{where}/tokens has an id of {int(rows.tokens.max())}, but the vocabulary ends at {ids - 1}; "
            "the file is damaged, so make it again by `shoal preprocess`"
        )
    if int(rows.labels.max()) >= dataset.settings.class_count:
        raise TrainingError(
            f"{where}/labels has a label of {int(rows.labels.max())}, but labels are from 0 to "
            f"{dataset.settings.class_count - 1}; make the file by `shoal preprocess`"
        )
    scale = _scale(dataset)
    if (
        not dataset.settings.labelled
        and not scale.low <= int(rows.ratings.min()) <= int(rows.ratings.max()) <= scale.high
    ):
        raise TrainingError(
            f"{where}/ratings has ratings outside {scale.low} to {scale.high}; make the file by `shoal preprocess`"
        )
    most = MAX_ROW_WORDS if dataset.settings.ragged else dataset.settings.row_length
    if not 1 <= int(rows.lengths.min()) <= int(rows.lengths.max()) <= most:
        raise TrainingError(f"{where}/lengths has impossible lengths; make the file by `shoal preprocess`")
