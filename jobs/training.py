"""Makes a dataset of raw texts for one training, on this machine or on a node."""

from pathlib import Path

import h5py
import numpy as np

from common.errors import DataError
from corpus.layout import MIN_ROWS, MIN_TRAINING_ROWS
from corpus.raw_texts import RawTexts
from corpus.reading.acceptance import require_classes
from corpus.text import STOPWORD_LISTS, load_stopwords
from jobs.local import run_prepared_work
from jobs.merge import MergeResult
from jobs.preparation import PreparedWork

_BLOCK_ROWS = 1 << 20


def make_training_dataset(request: RawTexts, folder: Path, *, option: str) -> MergeResult:
    """Make the dataset in `folder`.

    `option` names what the user can change if `folder` is not writable or its disk is full. Raises DataError if the
    input is unusable, has too few texts, or has no training text of a class.
    """
    settings = request.settings
    if settings.stopwords not in STOPWORD_LISTS:
        raise DataError(f"{settings.stopwords!r} is not a list of stopwords")
    work = PreparedWork(
        sources=request.sources,
        settings=settings,
        stopwords=load_stopwords(settings.stopwords, settings.words),
        max_malformed=request.max_malformed,
        plain_bytes=request.plain_bytes,
    )
    made = run_prepared_work(work, str(folder), option=option)
    _require_trainable(made, request)
    return made


def _require_trainable(made: MergeResult, request: RawTexts) -> None:
    """Raise DataError if a dataset has too few rows, or no training row of a class."""
    settings, train, test = request.settings, made.counts["train"], made.counts["test"]
    if train < MIN_TRAINING_ROWS or test < MIN_ROWS:
        way = "input, another --test-share, or --test-input FILE"
        if settings.test_input:
            way = "test texts" if train >= MIN_TRAINING_ROWS else "training texts"
        raise DataError(
            f"training needs at least {MIN_TRAINING_ROWS} training texts and {MIN_ROWS} test texts with words, "
            f"but the input has {train:,} and {test:,}; give more {way}"
        )
    with h5py.File(made.dataset) as file:
        codes = file["train/labels" if settings.labelled else "train/ratings"]
        counts = np.zeros(1 << 16, np.int64)
        for start in range(0, len(codes), _BLOCK_ROWS):
            counts += np.bincount(codes[start : start + _BLOCK_ROWS], minlength=len(counts))
    require_classes({code: int(counts[code]) for code in np.flatnonzero(counts).tolist()}, settings, request.sources)
