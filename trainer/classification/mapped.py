"""Memory-mapped rows of a dataset in plain files on this machine's disk, for a dataset that does not fit into memory.

A dataset is compressed in chunks of some thousand rows, so a random batch would decompress one chunk per row. This
module therefore unpacks the dataset once per machine. The machine's ranks map the files into memory, and share the
kernel's page cache. Few pages are read twice, because the order of rows (order.py) uses one window of blocks at a time.

On each machine, the first rank that takes the lock writes the files, while the other ranks wait. The name of a folder
is the digest of its dataset. A folder gets this name only when it is complete, and when its rows have been checked
against the digest. Otherwise, its rows could later be used as rows of a different dataset. Only files with the expected
names are removed.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from common.errors import DataError, explain_full_disk
from common.files import lock
from common.private_folders import make_users_folder
from corpus.layout import ArraysDigest, RowBlock, is_digest

if TYPE_CHECKING:
    from corpus.dataset import Dataset
    from corpus.packing import StoredArray

Arrays = dict[str, np.ndarray]
Check = Callable[[str, RowBlock], None]
"""Function of a split's name and a block of its rows. It raises TrainingError if the rows are invalid."""


def map_rows(dataset: Dataset, folder: Path, check: Check) -> dict[str, Arrays]:
    """Return the arrays of a dataset, by split and name, memory-mapped from files below `folder`.

    If the files are missing, they are written first. Raises TrainingError if `check` raises it. Raises DataError if the
    disk is full, or if the rows do not match the dataset's digest. Raises OSError if the folder is not writable.
    """
    if not is_digest(dataset.digest):
        raise DataError(f"{dataset.path}: {dataset.digest!r} is not a digest; create the file with `shoal preprocess`")
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / dataset.digest
    with _locked(folder / f"{dataset.digest}.lock"):
        if (mapped := _mapped(dataset, home)) is None:
            partial = folder / f".{dataset.digest}.partial"
            for old in (partial, home):  # left by a killed run, or damaged by a program that deletes old files
                _remove(dataset, old)
            try:
                with explain_full_disk(folder, "--cache"):
                    _write(dataset, partial, check)
                partial.rename(home)
            finally:
                with suppress(OSError):
                    _remove(dataset, partial)
            mapped = _mapped(dataset, home)
        assert mapped is not None
        return mapped


def _mapped(dataset: Dataset, home: Path) -> dict[str, Arrays] | None:
    """Return the memory-mapped arrays of a dataset; None if a file is missing or damaged."""
    mapped: dict[str, Arrays] = {"train": {}, "test": {}}
    for split in (dataset.train, dataset.test):
        for name, array in split.arrays.items():
            try:
                found = np.load(_file(home, split.name, name), mmap_mode="r")
            except (FileNotFoundError, ValueError, EOFError):
                return None
            if (found.shape, found.dtype) != (tuple(array.shape), array.dtype):
                return None
            mapped[split.name][name] = found
    return mapped


def _write(dataset: Dataset, folder: Path, check: Check) -> None:
    """Check the rows of a dataset and write them to `folder`.

    Plain writes are used because, on a full disk, a write to a mapped file would kill the process without an error.
    """
    folder.mkdir()
    digest = ArraysDigest(dataset.settings)
    for split in (dataset.train, dataset.test):
        with ExitStack() as stack:
            files = {name: stack.enter_context(_file(folder, split.name, name).open("wb")) for name in split.arrays}
            for name, file in files.items():
                file.write(_header(split.arrays[name]))
            for block, arrays in split.stored_blocks():
                check(split.name, block)
                for name, file in files.items():
                    values = np.ascontiguousarray(arrays[name])
                    digest.update(split.name, name, values)
                    file.write(values.data)
    dataset.require_digest(digest.hexdigest(dataset.vocabulary))


def _header(array: StoredArray) -> bytes:
    """Return the header of an array in NumPy's file format."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": array.dtype.str, "fortran_order": False, "shape": tuple(array.shape)}
    )
    return header.getvalue()


def _file(folder: Path, split: str, name: str) -> Path:
    return folder / f"{split}.{name}.npy"


def _remove(dataset: Dataset, folder: Path) -> None:
    """Remove a folder of rows, if it exists. If the folder contains other files, keep the folder and raise OSError."""
    if folder.is_symlink():
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(folder))
    with suppress(FileNotFoundError):
        for split in (dataset.train, dataset.test):
            for name in split.arrays:
                _file(folder, split.name, name).unlink(missing_ok=True)
        folder.rmdir()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock on the file at `path` during this block. The file is created if necessary; links are not followed."""
    while (handle := lock(path, wait=True)) is None:
        pass
    try:
        yield
    finally:
        os.close(handle)


def default_cache() -> Path:
    """Return the default folder for unpacked rows. Each user has a separate folder.

    Raises DataError if the folder is not writable, or if other users could change its files.
    """
    try:
        return make_users_folder("rows", "choose a different folder with --cache")
    except OSError as error:
        raise DataError(
            f"cannot create {error.filename}: {error.strerror}; choose a different folder with --cache"
        ) from error
