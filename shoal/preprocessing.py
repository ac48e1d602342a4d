"""Preprocessing."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.dataset_settings import DEFAULT, Settings
from corpus.reading.sources import Inputs, ReadingOptions
from jobs.merge import MergeResult
from jobs.pipeline import Progress, preprocess_locally
from shoal.arguments import errors_name_arguments

Files = str | Path | Sequence[str | Path]
"""Paths of files or folders, patterns, or s3:// addresses; or one of them."""


@errors_name_arguments(
    input="files", test_input="test_files", text_field="text", rating_field="rating", label_field="label", format="kind"
)
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

    Args:
        files: Paths of files and folders, patterns, or addresses s3://...
        output: The folder of the results.
        test_files: Files whose rows are the test rows; without any, a share of the others is.
        exclude: Files among those that are not read.
        settings: Those of the dataset (default: `DEFAULT`), such as `replace(DEFAULT, test_share=0.2)`.
        progress: An object of yours whose `stage(name, total)` is called when a stage begins, and `at(done)` within it.
        reading: How files are read whose format is not detected, such as `label="sentiment"`, `text=("title", "body")`,
            `kind="csv"`.

    Returns:
        The path of the dataset, its counts and its digest, and how many lines were malformed.

    Raises:
        DataError: The input cannot be used.
        JobError: A job failed.
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
