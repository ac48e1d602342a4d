"""Dataset of a classifier: training, validation and test rows.

Every rank has all training rows, in memory or on its machine's disk, so that any rank can compute any rows of any
global batch. The first twentieth of the dataset's training rows are the validation rows. The model is not trained on
them: they are used to evaluate it after each epoch, and to calibrate it. Libraries for reading files are imported only
when rows come from a file.
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
from common.errors import TrainingError
from corpus.layout import MAX_ROW_WORDS, MIN_ROWS, SPLITS, RowBlock
from corpus.rules import VALIDATION_SHARE
from corpus.text import FIRST_WORD
from trainer.classification.losses import Scale
from trainer.classification.mapped import default_cache, map_rows
from trainer.classification.rows import Labels, RaggedRows, Rows, TextRows

if TYPE_CHECKING:
    from corpus.dataset import Dataset, Split

_EXCERPT_WORDS, _EXCERPT_LETTERS = 30, 200
_COUNTED = 1 << 20  # number of labels that are counted at once
_EVALUATION_MEMORY_SHARE = 0.1
"""Largest share of a GPU's free memory for validation rows. Test rows get the same share of the memory left after
that."""


class StartVectors(NamedTuple):
    ids: npt.NDArray[np.int64]
    """(n,): ids of the words that have a pretrained vector."""
    vectors: npt.NDArray[np.float32]
    """(n, size): the vectors of these words."""
    note: str = ""
    """Message for the user about words of the file that were skipped."""


class WeightedNgrams(NamedTuple):
    """N-grams of the linear model: their `keys` (k,) int64, in ascending order, and their `ratios` (k,) float32.

    The first key, with ratio 0, stands for all unknown n-grams.
    """

    keys: IntArray
    ratios: npt.NDArray[np.float32]
    longest: int
    """Number of words in the longest row in which the n-grams were counted."""
    strength: float = 1.0
    """Factor of the outputs' distance from the class frequencies (strength.py)."""


@dataclass(frozen=True, kw_only=True)
class TextData:
    """Rows of a run's dataset, and the settings that a model needs to read new texts."""

    training: Rows
    validation: Rows
    test: Rows
    vocabulary: list[str]
    stopwords: frozenset[str]
    row_length: int
    """Largest number of words per row in a padded batch."""
    scale: Scale
    rating_steps: int
    """Number of steps of the rating scale per star: 2 if the dataset has half stars."""
    rating_fraction: bool
    """True if a text's rating can also be written as a fraction of the largest rating, such as 4/5."""
    digest: str
    words: str = "letters"
    """Tokenisation rule of the texts (corpus/dataset_settings.py)."""
    classes: tuple[str, ...] = ()
    """Names of the classes, in the order of their labels; empty for the two classes negative and positive."""
    start: StartVectors | None = None
    """Pretrained vectors. Only the first rank of a new run has them; the other ranks receive that rank's model."""
    ngrams: WeightedNgrams | None = None
    """N-grams of the training rows, for a new run of the linear model."""

    @property
    def sizes(self) -> dict[str, int]:
        """Number of training, validation and test rows."""
        return {"training": len(self.training), "validation": len(self.validation), "test": len(self.test)}

    def cut_to(self, words: int) -> Self:
        """Return the data with ragged rows cut to `words` words in padded batches. Fixed rows are already cut."""
        if not isinstance(self.training, RaggedRows):
            return self
        parts = {part: replace(getattr(self, part), row_length=words) for part in self.sizes}
        return replace(self, row_length=words, **parts)

    def excerpt(self, rows: Rows, number: int) -> str:
        """Return the first words of the row `number` of `rows`, as one line. `…` stands for words outside the
        vocabulary, and for the words that are cut off."""
        ids = rows.whole_batch(np.array([number]), torch.device("cpu")).tokens[: _EXCERPT_WORDS + 1].tolist()
        words = ["…" if each < FIRST_WORD else self.vocabulary[each - FIRST_WORD] for each in ids]
        text = " ".join(words[:_EXCERPT_WORDS])
        is_cut = len(words) > _EXCERPT_WORDS or len(text) > _EXCERPT_LETTERS
        return f"{text[:_EXCERPT_LETTERS]} …" if is_cut else text

    def balancing_weight(self) -> float:
        """Return the default weight of a positive row: the fourth root of (negative rows / positive rows).

        This is a compromise between no weights and weights that make both classes count equally. With equally counting
        classes, a model finds more rows of a rare class, but predicts this class too often. Without weights, a model
        hardly ever predicts a rare class.
        """
        positive = int(self.training.labels.sum())
        return math.sqrt(math.sqrt((len(self.training) - positive) / positive))


def load_data(
    path: Path,
    *,
    learned: Callable[[int], int] = lambda every: every,
    cache: Path | None = None,
    memory: int | None = None,
) -> TextData:
    """Read a dataset into memory, or map it from this machine's disk (mapped.py) if it needs too much memory.

    `learned`: function of the number of training rows that returns how many of them to train on. `cache`: the folder
    for rows on disk. `memory`: the free memory of this rank, in bytes; the rows may fill half of it. None: any amount.

    Raises DataError if the file is not a dataset. Raises TrainingError if the dataset is unsuitable for training: it
    has an empty split, a class without rows, or ids beyond the vocabulary.
    """
    from corpus.dataset import open_dataset

    with open_dataset(path) as dataset:
        for split in (dataset.train, dataset.test):
            if len(split) < MIN_ROWS:
                raise TrainingError(
                    f"{path}: /{split.name} has {plural(len(split), 'row')}, too few to train or evaluate on; "
                    "preprocess more texts"
                )
        if memory is not None and _bytes(dataset) > memory / 2:
            training, test = _mapped(dataset, cache)
        else:
            try:
                training, test = (_read(dataset, split) for split in (dataset.train, dataset.test))
            except MemoryError:
                raise TrainingError(
                    f"{path}: the rows, {_bytes(dataset):,} bytes, do not fit into this machine's memory; "
                    "use fewer ranks per machine"
                ) from None
        held_out = max(1, int(len(training) * VALIDATION_SHARE))
        rows = training[held_out:]
        rows = take_rows(rows, learned(len(rows)))
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


def place_parts(data: TextData, device: torch.device) -> TextData:
    """Return `data` with its rows placed by `place_rows`. Other rows than training rows must need little memory."""
    training = place_rows(data.training, device)

    def near(rows: Rows) -> Rows:
        if rows.tokens is training.tokens:
            return replace(rows, device_tokens=training.device_tokens)
        return place_rows(rows, device, share=_EVALUATION_MEMORY_SHARE)

    return replace(data, training=training, validation=near(data.validation), test=near(data.test))


def place_rows(rows: Rows, device: torch.device, *, share: float = 0.5) -> Rows:
    """Return `rows`, with a copy of their tokens on a GPU if the tokens fill at most `share` of its free memory."""
    if device.type != "cuda":
        return rows
    free, _ = torch.cuda.mem_get_info(device)
    return rows.copy_to(device) if rows.tokens.nbytes <= share * free else rows


def take_rows(rows: Rows, count: int) -> Rows:
    """Return a sample of `count` rows: the first fixed rows, which are in the order of their digests, or ragged rows,
    which can be in the order of the input, at equal distances."""
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
            f"cannot write to {error.filename or cache}: {error.strerror}; choose a different folder with --cache"
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
    """Raise TrainingError if a class has no training row."""
    classes = dataset.settings.class_count
    rows = np.zeros(classes, np.int64)
    for start in range(0, len(labels), _COUNTED):
        rows += np.bincount(labels[start : start + _COUNTED], minlength=classes)
    if rows.all():
        return
    missing = int(np.argmin(rows))
    if dataset.settings.classes:
        raise TrainingError(
            f"{dataset.path}: the class {dataset.settings.classes[missing]} has no training row; preprocess more texts "
            "of this class, or leave the class out"
        )
    name = ("negative", "positive")[missing]
    raise TrainingError(
        f"{dataset.path}: there is no {name} training row, but a classifier needs both classes; preprocess more texts"
    )


def _check(dataset: Dataset, split: str, rows: RowBlock) -> None:
    """Raise TrainingError if `rows` contain values that `shoal preprocess` never writes."""
    where = f"{dataset.path}: /{split}"
    ids = len(dataset.vocabulary) + FIRST_WORD
    if int(rows.tokens.max()) >= ids:
        raise TrainingError(
            f"{where}/tokens has an id of {int(rows.tokens.max())}, but the vocabulary ends at {ids - 1}; "
            "the file is damaged, so create it again with `shoal preprocess`"
        )
    if int(rows.labels.max()) >= dataset.settings.class_count:
        raise TrainingError(
            f"{where}/labels has a label of {int(rows.labels.max())}, but labels are from 0 to "
            f"{dataset.settings.class_count - 1}; create the file with `shoal preprocess`"
        )
    scale = _scale(dataset)
    if (
        not dataset.settings.labelled
        and not scale.low <= int(rows.ratings.min()) <= int(rows.ratings.max()) <= scale.high
    ):
        raise TrainingError(
            f"{where}/ratings has ratings outside {scale.low} to {scale.high}; create the file with `shoal preprocess`"
        )
    most = MAX_ROW_WORDS if dataset.settings.ragged else dataset.settings.row_length
    if not 1 <= int(rows.lengths.min()) <= int(rows.lengths.max()) <= most:
        raise TrainingError(f"{where}/lengths has impossible lengths; create the file with `shoal preprocess`")
