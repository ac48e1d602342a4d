"""The rows of a dataset as plain files on this machine's disk: for one that does not fit into its memory.

A dataset is packed in chunks of some thousand rows, so a batch drawn from it would unpack a chunk a row. Here each
machine unpacks it once; its ranks map the files, and the kernel keeps of them what is in use: order.py draws from one
window of blocks at a time. All ranks of a machine share these pages.

The easy mistake is to let every rank write: the first does, the others wait for it. A folder under its final name is
whole, and holds the rows of the digest that is its name: were a file believed, its rows could later be taken for those
of another dataset. Nothing is removed but files of these names.
"""

from __future__ import annotations

import errno
import fcntl
import io
import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpus.errors import DataError, explain_full_disk
from corpus.layout import ARRAYS, SPLITS, ArraysDigest, is_digest
from corpus.layout import RowBlock as Block

if TYPE_CHECKING:
    from corpus.dataset import Dataset, Split

Arrays = dict[str, np.ndarray]
Check = Callable[[str, Block], None]
"""Raises TrainingError for rows (of a split that is named) that cannot be."""

_HEADER_BYTES = 128


def map_rows(dataset: Dataset, folder: Path, check: Check) -> dict[str, Arrays]:
    """By split and name the arrays of a dataset, mapped from `folder`, which is filled first where it is not yet.

    Raises TrainingError where `check` does, DataError when the disk is full or the rows are not those of the digest,
    and OSError when it cannot be written.
    """
    if not is_digest(dataset.digest):
        raise DataError(f"{dataset.path}: {dataset.digest!r} is no digest; make the file by `shoal preprocess`")
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / dataset.digest
    with _locked(folder / f"{dataset.digest}.lock"):
        if not _is_whole(dataset, home):
            partial = folder / f".{dataset.digest}.partial"
            for old in (partial, home):  # of a run that was killed; and what a cleaner of old files has left
                _remove(old)
            try:
                with explain_full_disk(folder, "--cache"):
                    _write(dataset, partial, check)
                partial.rename(home)
            finally:
                with suppress(OSError):
                    _remove(partial)
        return {
            split.name: {name: np.load(_file(home, split.name, name), mmap_mode="r") for name in ARRAYS}
            for split in (dataset.train, dataset.test)
        }


def _is_whole(dataset: Dataset, home: Path) -> bool:
    for split in (dataset.train, dataset.test):
        for name in ARRAYS:
            file = _file(home, split.name, name)
            header = file.open("rb").read(_HEADER_BYTES) if file.exists() else b""
            array = getattr(split, name)
            size = _HEADER_BYTES + math.prod(array.shape) * array.dtype.itemsize
            if header != _header(split, name) or file.stat().st_size != size:
                return False
    return True


def _write(dataset: Dataset, folder: Path, check: Check) -> None:
    """By plain writes: a mapped file on a full disk would end the process without an error."""
    folder.mkdir()
    digest = ArraysDigest()
    for split in (dataset.train, dataset.test):
        with ExitStack() as stack:
            files = {name: stack.enter_context(_file(folder, split.name, name).open("wb")) for name in ARRAYS}
            for name, file in files.items():
                file.write(_header(split, name))
            for block in split.blocks():
                check(split.name, block)
                for name, file in files.items():
                    values = np.ascontiguousarray(getattr(block, name))
                    digest.update(split.name, name, values)
                    file.write(values.data)
    dataset.require_digest(digest.hexdigest(dataset.vocabulary))


def _header(split: Split, name: str) -> bytes:
    """What NumPy's files begin with; always of _HEADER_BYTES for arrays like these."""
    array, header = getattr(split, name), io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": array.dtype.str, "fortran_order": False, "shape": tuple(array.shape)}
    )
    return header.getvalue()


def _file(folder: Path, split: str, name: str) -> Path:
    return folder / f"{split}.{name}.npy"


def _remove(folder: Path) -> None:
    """Remove a folder of rows, if it is there. Raises OSError, and leaves it, where it holds anything else."""
    if folder.is_symlink():
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(folder))
    with suppress(FileNotFoundError):
        for split in SPLITS:
            for name in ARRAYS:
                _file(folder, split, name).unlink(missing_ok=True)
        folder.rmdir()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock of a file, which is made where it is not there, and never one that a link leads to."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
