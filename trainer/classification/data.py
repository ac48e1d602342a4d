"""The dataset for the ranks: training, validation and test rows, and batches of them.

Every rank has all training rows, in its memory or on its machine's disk, so that any rank can take any part of any
global batch. The first twentieth of the training rows is the validation part: it is kept out of training, shows after
each epoch how the model does on unseen rows, and is what settings are chosen by. Libraries that read files are imported
only when rows come from a file.
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
from corpus.layout import LEAST_ROWS, MOST_WORDS, SPLITS, RowBlock
from corpus.rules import VALIDATION_SHARE
from corpus.text import FIRST_WORD
from trainer.classification.losses import Scale
from trainer.classification.mapped import map_rows
from trainer.classification.rows import Labels, RaggedRows, Rows, TextRows

if TYPE_CHECKING:
    from corpus.dataset import Dataset, Split

_COUNTED = 1 << 20  # labels that are counted at once
_JUDGED_SHARE = 0.1
"""The most of a GPU's free memory that the rows of validation, and then of the test, may fill."""


class StartVectors(NamedTuple):
    ids: npt.NDArray[np.int64]
    """(n,)"""
    vectors: npt.NDArray[np.float32]
    """(n, size)"""
    note: str = ""
    """What was left out of the file, for the user."""


class WeightedNgrams(NamedTuple):
    """N-grams by their `keys` (k,), ascending, and the `ratios` (k,) of each; the first is none and has 0."""

    keys: IntArray
    ratios: npt.NDArray[np.float32]
    longest: int
    """The words of the longest row that they were found in."""


@dataclass(frozen=True, kw_only=True)
class TextData:
    """What a run learns from and is evaluated on, and what a model needs to read new texts."""

    training: Rows
    validation: Rows
    test: Rows
    vocabulary: list[str]
    stopwords: frozenset[str]
    row_length: int
    """The most words of a row in a padded batch."""
    scale: Scale
    rating_steps: int
    """Steps of the scale per star: 2 if there are half stars."""
    rating_fraction: bool
    """Whether ratings could also be written as fractions of the largest."""
    digest: str
    words: str = "letters"
    """The rule by which texts became words (corpus/dataset_settings.py)."""
    classes: tuple[str, ...] = ()
    """The names of more than two classes, by label; empty where there are two."""
    start: StartVectors | None = None
    """On the first rank of a run that begins with vectors that were learnt before; the other ranks' are replaced."""
    ngrams: WeightedNgrams | None = None
    """Those of the training rows, for a new run of the linear model."""

    @property
    def sizes(self) -> dict[str, int]:
        """The number of rows of each part."""
        return {"training": len(self.training), "validation": len(self.validation), "test": len(self.test)}

    def read_to(self, words: int) -> Self:
        """The data with whole texts cut to so many words in padded batches; other rows were cut before."""
        if not isinstance(self.training, RaggedRows):
            return self
        parts = {part: replace(getattr(self, part), row_length=words) for part in self.sizes}
        return replace(self, row_length=words, **parts)

    def balancing_weight(self) -> float:
        """The default weight of a positive row: the fourth root of negatives / positives. It lies between unweighted
        classes and classes of equal weight, nearer to the first. Equal weight finds more rows of a rare class, but
        predicts it too often; without weights it is hardly ever predicted."""
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

    `learnt`: of so many training rows the number that is learnt from. `rows_in`: `disk`; `auto`, which uses the disk if
    the rows would fill more than half of `memory`, the free bytes of this rank; `memory` or `device` (`place_rows`).
    Raises DataError for a file that is no dataset, and TrainingError for a dataset that nothing can be learnt from: an
    empty split, a class without a row, ids beyond the vocabulary.
    """
    from corpus.dataset import open_dataset

    with open_dataset(path) as dataset:
        for split in (dataset.train, dataset.test):
            if len(split) < LEAST_ROWS:
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
                    "take --rows-in disk, or fewer ranks"
                ) from None
        held_out = max(1, int(len(training) * VALIDATION_SHARE))
        rows = training[held_out:]
        rows = some_of(rows, learnt(len(rows)))
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
    """`data` with its training rows placed as `place_rows` does, and the others on a GPU where they hardly matter."""
    training = place_rows(data.training, device, rows_in=rows_in)

    def near(rows: Rows) -> Rows:
        if rows.tokens is training.tokens:
            return replace(rows, device_tokens=training.device_tokens)
        return place_rows(rows, device, rows_in="auto" if rows_in == "device" else rows_in, share=_JUDGED_SHARE)

    return replace(data, training=training, validation=near(data.validation), test=near(data.test))


def place_rows(rows: Rows, device: torch.device, *, rows_in: str, share: float = 0.5) -> Rows:
    """`rows` with a copy of their tokens on `device`, if `rows_in` is `device`, or `auto` on a GPU of whose free memory
    they fill no more than `share`. Raises TrainingError if they do not fit."""
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
    """The default folder for unpacked rows, one per user. Raises DataError if a folder of this name may be another
    user's, or cannot be made."""
    try:
        return make_users_folder("rows", "name another folder by --cache")
    except OSError as error:
        raise DataError(f"cannot make {error.filename}: {error.strerror}; name another folder by --cache") from error


def some_of(rows: Rows, count: int) -> Rows:
    """So many of the rows. Fixed rows are in the order of their digests, so that the first of them are a random sample;
    ragged rows may be in the order of the input, and are taken at equal distances."""
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
    """Raise TrainingError unless there is a training row of each class."""
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
    """Raise TrainingError for rows that `shoal preprocess` cannot have made."""
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
    most = MOST_WORDS if dataset.settings.ragged else dataset.settings.row_length
    if not 1 <= int(rows.lengths.min()) <= int(rows.lengths.max()) <= most:
        raise TrainingError(f"{where}/lengths has lengths that no row can have; make the file by `shoal preprocess`")
