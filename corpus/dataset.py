"""An encoded dataset, one HDF5 file: open it and read (here), write it (writing.py), what is in it (layout.py).

h5py files must be opened inside a worker process, never before a fork.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

import h5py

from corpus.errors import DataError
from corpus.layout import ARRAYS, LAYOUT_VERSION, SPLITS, ArraysDigest, Rows
from corpus.packing import StoredArray
from corpus.settings import Settings
from corpus.writing import DatasetWriter, write_dataset

__all__ = [
    "ARRAYS",
    "LAYOUT_VERSION",
    "SPLITS",
    "Dataset",
    "DatasetWriter",
    "Rows",
    "Split",
    "open_dataset",
    "write_dataset",
]

_BLOCK_BYTES = 8 << 20
_MAKE_AGAIN = "make it again by `shoal preprocess`"


@dataclass(frozen=True)
class Split:
    """One split of an open dataset; the arrays are read from disk as they are sliced."""

    name: str
    tokens: StoredArray
    lengths: StoredArray
    labels: StoredArray
    ratings: StoredArray

    def __len__(self) -> int:
        return len(self.labels)

    def blocks(self) -> Iterator[Rows]:
        """The rows in order, in blocks of about 8 MiB, of whole chunks where chunks are no larger."""
        chunk_bytes = self.tokens.dtype.itemsize * self.tokens.shape[1] * self.tokens.chunk_rows
        step = self.tokens.chunk_rows * max(1, _BLOCK_BYTES // chunk_bytes)
        for start in range(0, len(self), step):
            yield self.rows(start, start + step)

    def rows(self, start: int, end: int) -> Rows:
        """The rows from `start` to before `end`."""
        return Rows(*(array[start:end] for array in (self.tokens, self.lengths, self.labels, self.ratings)))


@dataclass
class Dataset:
    """An open dataset file; a context manager that closes it."""

    path: Path | str
    train: Split
    test: Split
    vocabulary: list[str]
    stopwords: frozenset[str]
    settings: Settings
    counts: dict[str, Any]
    digest: str
    _file: h5py.File = field(repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def computed_digest(self) -> str:
        """The digest of the arrays as they are on disk now; differs from `digest` when the file was changed.

        Raises DataError when they cannot be read any more.
        """
        digest = ArraysDigest()
        for split in (self.train, self.test):
            for rows in split.blocks():
                for name in ARRAYS:
                    digest.update(split.name, name, getattr(rows, name))
        return digest.hexdigest(self.vocabulary)


def open_dataset(path: Path | str, content: BinaryIO | None = None) -> Dataset:
    """Open a dataset for reading, checking its layout.

    `content` is what to read where `path` is only a name, such as an address of S3: a file that can be sought in.
    Raises DataError when the file is missing, is no Shoal dataset, or has another layout version.
    """
    try:
        file = h5py.File(path if content is None else content, "r")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; `shoal preprocess` makes a dataset") from None
    except OSError as error:
        if Path(path).is_dir():
            raise DataError(f"{path} is a folder; name the dataset in it, such as {path}/dataset.h5") from error
        said = " ".join((error.strerror or str(error)).split())
        raise DataError(f"{path} is no HDF5 file, or a damaged one: {said}") from error
    try:
        return _read(path, file)
    except BaseException:
        file.close()
        raise


def _read(path: Path | str, file: h5py.File) -> Dataset:
    try:
        version = file.attrs.get("layout_version")
        if version is not None and int(version) != LAYOUT_VERSION:
            raise DataError(
                f"{path} has layout version {version}, and this Shoal reads {LAYOUT_VERSION}; {_MAKE_AGAIN}"
            )
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise DataError(f"{path} is damaged: {error}; {_MAKE_AGAIN}") from error
    if version is None:
        raise DataError(f"{path} is an HDF5 file, but no Shoal dataset; `shoal preprocess` makes one")
    try:
        dataset = _opened(path, file)
    except (AttributeError, KeyError, TypeError, ValueError, OSError, RuntimeError, DataError) as error:
        raise DataError(f"{path} is damaged: {error}; {_MAKE_AGAIN}") from error
    for split in (dataset.train, dataset.test):
        rows = len(split)
        if split.tokens.shape != (rows, dataset.settings.row_length) or any(
            getattr(split, name).shape != (rows,) for name in ARRAYS[1:]
        ):
            raise DataError(f"{path} is damaged: the arrays of /{split.name} differ in length; {_MAKE_AGAIN}")
    return dataset


def _opened(path: Path | str, file: h5py.File) -> Dataset:
    written = json.loads(file.attrs["settings"])
    train, test = (Split(split, *(StoredArray(file[f"{split}/{name}"], path) for name in ARRAYS)) for split in SPLITS)
    return Dataset(
        path=path,
        train=train,
        test=test,
        vocabulary=list(file["vocabulary"].asstr()[:]),
        stopwords=frozenset(file["stopwords"].asstr()[:]),
        settings=Settings(**{**written, "rating_range": tuple(written["rating_range"])}),
        counts=json.loads(file.attrs["counts"]),
        digest=str(file.attrs["digest"]),
        _file=file,
    )
