"""The dataset for the ranks: training, validation and test rows, and batches of them.

Every rank has all training rows, in its memory or on its machine's disk, so that any rank can take any part of any
global batch. The first twentieth of the training rows is the validation part: it is kept out of training, shows after
each epoch how the model does on unseen rows, and is what settings are chosen by. Libraries that read files are imported
only when rows come from a file.
"""

from __future__ import annotations

import math
import os
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpus.display import plural
from corpus.layout import ARRAYS, LEAST_ROWS, SPLITS, RowBlock
from corpus.private_folders import make_private_folder
from corpus.text import FIRST_WORD
from trainer.classification.losses import Scale
from trainer.classification.mapped import map_rows
from trainer.classification.word_dropout import WordDropout
from trainer.errors import TrainingError
from trainer.order import IntArray

if TYPE_CHECKING:
    from corpus.dataset import Dataset, Split

VALIDATION_SHARE = 0.05

_COPIED = 1 << 18  # rows at once on their way to a device


@dataclass(frozen=True, kw_only=True)
class TextBatch:
    """Rows for a model, the longest first: `tokens` (n, longest) int32, `lengths` (n,) int64, `labels` and `ratings`
    (n,) uint8; and `keys` (n,) int64, which select masks of dropout, or None."""

    tokens: Tensor
    lengths: Tensor
    labels: Tensor
    ratings: Tensor
    keys: Tensor | None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, kw_only=True)
class TextRows:
    """N rows: `tokens` (N, L) ids padded with 0, `lengths`, `labels` and `ratings` (N,)."""

    tokens: npt.NDArray[np.uint16 | np.uint32]
    lengths: npt.NDArray[np.uint16]
    labels: npt.NDArray[np.uint8]
    ratings: npt.NDArray[np.uint8]
    device_tokens: Tensor | None = None
    """A copy of `tokens` on the computing device, as signed integers of the same size."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, part: slice) -> TextRows:
        return TextRows(
            tokens=self.tokens[part],
            lengths=self.lengths[part],
            labels=self.labels[part],
            ratings=self.ratings[part],
        )

    def batch(
        self, numbers: IntArray, device: torch.device, *, keys: IntArray | None = None, words: WordDropout | None = None
    ) -> TextBatch:
        """The rows of these numbers (n,), n > 0, cut to the longest of them, with only the words that `words` keep.

        `keys` (n,) select their masks of dropout (dropout.py).
        """
        lengths, places = self.lengths[numbers].astype(np.int64), None
        if words is not None and keys is not None:
            lengths, places = words(lengths, keys)
        longest_first = np.argsort(-lengths, kind="stable")
        numbers, lengths = numbers[longest_first], lengths[longest_first]
        places = None if places is None else places[longest_first]

        def there(array: npt.NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(device, non_blocking=True)

        return TextBatch(
            tokens=self._tokens(numbers, lengths, places, device),
            lengths=there(lengths),
            labels=there(self.labels[numbers]),
            ratings=there(self.ratings[numbers]),
            keys=None if keys is None else there(keys[longest_first]),
        )

    def copy_to(self, device: torch.device) -> TextRows:
        """These rows with a copy of their tokens on a device, so that batches need not be sent there.

        Raises torch.OutOfMemoryError if they do not fit.
        """
        signed = self.tokens.view(f"i{self.tokens.itemsize}")
        device_tokens = torch.empty(signed.shape, dtype=torch.from_numpy(signed[:0].copy()).dtype, device=device)
        for start in range(0, len(signed), _COPIED):
            device_tokens[start : start + _COPIED] = torch.from_numpy(np.array(signed[start : start + _COPIED]))
        return replace(self, device_tokens=device_tokens)

    def _tokens(
        self, numbers: IntArray, lengths: IntArray, places: npt.NDArray[np.int32] | None, device: torch.device
    ) -> Tensor:
        longest = int(lengths[0])
        if self.device_tokens is None:
            if places is None:
                tokens = self.tokens[numbers, :longest].astype(np.int32)
            else:
                tokens = self.tokens[numbers[:, None], places[:, :longest]].astype(np.int32)
                tokens *= np.arange(longest) < lengths[:, None]
            return torch.from_numpy(tokens).to(device, non_blocking=True)
        chosen = torch.from_numpy(numbers).to(device, non_blocking=True)
        if places is None:
            found = self.device_tokens[:, :longest][chosen]
        else:
            at = torch.from_numpy(places[:, :longest]).to(device, non_blocking=True)
            real = torch.arange(longest, device=device) < torch.from_numpy(lengths).to(device)[:, None]
            found = self.device_tokens[chosen[:, None], at] * real
        return found.int() & 0xFFFF if found.dtype == torch.int16 else found

    def ids(self, numbers: IntArray, words: int) -> IntArray:
        """(m,): the ids below `words` that occur in these rows, ascending; including 0 if there is padding."""
        seen = np.zeros(words, dtype=np.bool_)
        seen[self.tokens[numbers]] = True
        return np.flatnonzero(seen)


@dataclass(frozen=True, kw_only=True)
class TextData:
    """What a run learns from and is evaluated on, and what a model needs to read new texts."""

    training: TextRows
    validation: TextRows
    test: TextRows
    vocabulary: list[str]
    stopwords: frozenset[str]
    row_length: int
    scale: Scale
    rating_steps: int
    """Steps of the scale per star: 2 if there are half stars."""
    rating_fraction: bool
    """Whether ratings could also be written as fractions of the largest."""
    digest: str
    classes: tuple[str, ...] = ()
    """The names of the labels; empty for two classes."""

    @property
    def sizes(self) -> dict[str, int]:
        """The number of rows of each part."""
        return {"training": len(self.training), "validation": len(self.validation), "test": len(self.test)}

    def balancing_weight(self) -> float:
        """The default weight of a positive row: the fourth root of negatives / positives. It lies between unweighted
        classes and classes of equal weight, nearer to the first. Equal weight finds more rows of a rare class, but
        predicts it too often; without weights it is hardly ever predicted."""
        positive = int(self.training.labels.sum())
        return math.sqrt(math.sqrt((len(self.training) - positive) / positive))


def load_data(path: Path, *, rows_in: str = "memory", cache: Path | None = None, memory: int = 0) -> TextData:
    """Read a dataset into memory, or map it from `cache` on this machine's disk (mapped.py).

    `rows_in`: `disk`; `auto`, which uses the disk if the rows would fill more than half of `memory`, the free bytes of
    this rank; `memory` or `device` (see `place_rows`). Raises DataError for a file that is no dataset, and
    TrainingError for a dataset that nothing can be learnt from: an empty split, one class only, ids beyond the
    vocabulary.
    """
    from corpus.dataset import open_dataset

    with open_dataset(path) as dataset:
        for split in (dataset.train, dataset.test):
            if len(split) < LEAST_ROWS:
                raise TrainingError(
                    f"{path}: /{split.name} has {plural(len(split), 'row')}, too few to learn from or judge by; "
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
        learnt = training[held_out:]
        for label, name in enumerate(("negative", "positive")):
            if not (learnt.labels == label).any():
                raise TrainingError(f"{path}: there is no {name} training row; a classifier needs both classes")
        return TextData(
            training=learnt,
            validation=training[:held_out],
            test=test,
            vocabulary=dataset.vocabulary,
            stopwords=dataset.stopwords,
            row_length=dataset.settings.row_length,
            scale=_scale(dataset),
            rating_steps=dataset.settings.rating_steps,
            rating_fraction=dataset.settings.rating_fraction,
            digest=dataset.digest,
        )


def place_rows(rows: TextRows, device: torch.device, *, rows_in: str) -> TextRows:
    """`rows` with a copy of their tokens on `device`, if `rows_in` is `device`, or `auto` on a GPU whose free memory
    they fill no more than half of. Raises TrainingError if they do not fit."""
    if rows_in == "auto" and device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return rows.copy_to(device) if rows.tokens.nbytes <= free / 2 else rows
    if rows_in != "device":
        return rows
    try:
        return rows.copy_to(device)
    except torch.OutOfMemoryError:
        raise TrainingError(
            f"{rows.tokens.nbytes:,} bytes of training rows do not fit on {device}; leave out --rows-in"
        ) from None


def default_cache() -> Path:
    """The default folder for unpacked rows, one per user. It is on a disk: on many systems /tmp is in memory. Raises
    DataError if a folder of this name may be another user's."""
    home = Path("/var/tmp")  # noqa: S108
    home = home if home.is_dir() else Path(tempfile.gettempdir())
    return make_private_folder(home / f"shoal-rows-{os.geteuid()}", "name another folder by --cache")


def _scale(dataset: Dataset) -> Scale:
    settings = dataset.settings
    return Scale(0, 1, 1) if settings.labelled else Scale(*settings.rating_range, settings.positive_from)


def _bytes(dataset: Dataset) -> int:
    """The bytes of a dataset's rows in memory."""
    row = dataset.train.tokens.dtype.itemsize * dataset.settings.row_length + 4
    return row * (len(dataset.train) + len(dataset.test))


def _mapped(dataset: Dataset, cache: Path | None) -> tuple[TextRows, TextRows]:
    try:
        arrays = map_rows(dataset, cache or default_cache(), partial(_check, dataset))
    except OSError as error:
        raise TrainingError(
            f"cannot write to {error.filename or cache}: {error.strerror}; choose another --cache"
        ) from error
    if dataset.settings.labelled:
        for of_split in arrays.values():
            of_split["ratings"] = of_split["labels"]
    training, test = (TextRows(**arrays[split], device_tokens=None) for split in SPLITS)
    return training, test


def _read(dataset: Dataset, split: Split) -> TextRows:
    tokens, lengths, labels, ratings = (getattr(split, name)[:] for name in ARRAYS)
    _check(dataset, split.name, RowBlock(tokens, lengths, labels, ratings))
    return TextRows(
        tokens=tokens, lengths=lengths, labels=labels, ratings=labels if dataset.settings.labelled else ratings
    )


def _check(dataset: Dataset, split: str, rows: RowBlock) -> None:
    """Raise TrainingError for rows that `shoal preprocess` cannot have made."""
    where = f"{dataset.path}: /{split}"
    ids = len(dataset.vocabulary) + FIRST_WORD
    if int(rows.tokens.max()) >= ids:
        raise TrainingError(
            f"{where}/tokens has an id of {int(rows.tokens.max())}, but the vocabulary ends at {ids - 1}; "
            "the file is damaged, so make it again by `shoal preprocess`"
        )
    if int(rows.labels.max()) > 1:
        raise TrainingError(
            f"{where}/labels has a label of {int(rows.labels.max())}, but only 0 and 1 are possible; "
            "make the file by `shoal preprocess`"
        )
    scale = _scale(dataset)
    if (
        not dataset.settings.labelled
        and not scale.low <= int(rows.ratings.min()) <= int(rows.ratings.max()) <= scale.high
    ):
        raise TrainingError(
            f"{where}/ratings has ratings outside {scale.low} to {scale.high}; make the file by `shoal preprocess`"
        )
    if not 1 <= int(rows.lengths.min()) <= int(rows.lengths.max()) <= dataset.settings.row_length:
        raise TrainingError(f"{where}/lengths has lengths that no row can have; make the file by `shoal preprocess`")
