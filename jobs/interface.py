"""Preprocessing for programs: what `from jobs import ...` gives. See docs/python.md."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.dataset_settings import DEFAULT as DEFAULT
from corpus.dataset_settings import Settings as Settings
from corpus.reading.sources import Inputs, ReadingOptions
from jobs.merge import MergeResult as MergeResult
from jobs.pipeline import Progress, preprocess_locally

Files = str | Path | Sequence[str | Path]
"""Paths of files or folders, patterns, or s3:// addresses; or one of them."""


def preprocess(
    files: Files,
    output: str | Path,
    *,
    test_files: Files = (),
    exclude: Sequence[str] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> MergeResult:
    """Turn raw reviews into `output`/dataset.h5 and counts.json on this machine; returns what was made and counted.

    `settings` are those of the dataset, such as `replace(DEFAULT, test_share=0.2)`. `reading` has fields of
    `corpus.reading.sources.ReadingOptions`, such as `label="sentiment"`, for files whose format is not detected. Raises
    DataError for input that cannot be used, JobError for a job that failed.
    """
    settings = settings or DEFAULT
    options = ReadingOptions(
        rating_range=settings.rating_range,
        rating_steps=settings.rating_steps,
        rating_fraction=settings.rating_fraction,
        classes=settings.classes,
        **reading,
    )
    inputs = Inputs(files=_addresses(files), test=_addresses(test_files), exclude=tuple(exclude), options=options)
    return preprocess_locally(inputs, os.fspath(output), settings=settings, progress=progress)


def _addresses(files: Files) -> tuple[str, ...]:
    return (os.fspath(files),) if isinstance(files, str | Path) else tuple(os.fspath(file) for file in files)
