"""Preprocessing of raw reviews on this machine."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.dataset_settings import DEFAULT, Settings
from corpus.reading.sources import Inputs, ReadingOptions
from jobs.local import preprocess_locally
from jobs.merge import MergeResult
from shoal.api.arguments import errors_name_arguments
from shoal.progress import Bars

Files = str | Path | Sequence[str | Path]
"""One or several paths of files or folders, patterns, or s3:// addresses."""


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
    force: bool = False,
    **reading: Any,
) -> MergeResult:
    """Turn raw reviews into `output`/dataset.h5 and counts.json on this machine, with progress bars on standard error.

    Args:
        files: Paths of files and folders, patterns, or addresses s3://...
        output: Folder for the results.
        test_files: Files for the test rows (default: a share of the rows of `files`).
        exclude: Patterns of files to leave out.
        settings: Settings of the dataset (default: `DEFAULT`), such as `replace(DEFAULT, test_share=0.2)`.
        force: Whether to replace a dataset of other data in `output`.
        reading: Options for files with a format that is not detected, such as `label="sentiment"`,
            `text=("title", "body")`, `kind="csv"`.

    Returns:
        The path of the dataset, its counts and its digest, and the number of malformed lines.

    Raises:
        DataError: The input is invalid or unreadable.
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
    with Bars():
        return preprocess_locally(inputs, os.fspath(output), settings=settings, force=force)


def _addresses(files: Files) -> tuple[str, ...]:
    return (os.fspath(files),) if isinstance(files, str | Path) else tuple(os.fspath(file) for file in files)
