"""Opens and reads an encoded dataset, one HDF5 file. `writing` writes it; `layout` has its arrays and types.

Open the file inside a worker process: an h5py file must not be open during a fork.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

import h5py

from corpus import file_checks
from corpus.errors import DataError
from corpus.layout import ARRAYS, LAYOUT_VERSION, SPLITS, ArraysDigest, RowBlock, columns
from corpus.packing import StoredArray
from corpus.settings import Settings
from corpus.writing import DatasetWriter, write_dataset

__all__ = [
    "ARRAYS",
    "LAYOUT_VERSION",
    "SPLITS",
    "Dataset",
    "DatasetWriter",
    "RowBlock",
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

    def blocks(self) -> Iterator[RowBlock]:
        """The rows in order, in blocks of about 8 MiB, of whole chunks where chunks are no larger."""
        chunk_bytes = self.tokens.dtype.itemsize * self.tokens.shape[1] * self.tokens.chunk_rows
        step = self.tokens.chunk_rows * max(1, _BLOCK_BYTES // chunk_bytes)
        for start in range(0, len(self), step):
            yield self.rows(start, start + step)

    def rows(self, start: int, end: int) -> RowBlock:
        """The rows from `start` to before `end`."""
        return RowBlock(*(array[start:end] for array in (self.tokens, self.lengths, self.labels, self.ratings)))


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
        """The digest of the arrays as they are on disk now; it differs from `digest` when the file was changed.

        Raises DataError when they cannot be read any more.
        """
        digest = ArraysDigest()
        for split in (self.train, self.test):
            for rows in split.blocks():
                for name in ARRAYS:
                    digest.update(split.name, name, getattr(rows, name))
        return digest.hexdigest(self.vocabulary)

    def require_digest(self, found: str) -> None:
        """Raise DataError where `found`, the computed digest, is not the recorded one."""
        if found != self.digest:
            raise DataError(
                f"{self.path} was changed since it was made: the digest of its arrays is {found}, but {self.digest} is "
                "recorded; fetch it again, or make it again by `shoal preprocess`"
            )


def open_dataset(path: Path | str, content: BinaryIO | None = None) -> Dataset:
    """Open a dataset for reading, and check all of its metadata (`file_checks`).

    `content` is a seekable file to read from where `path` is only a name, such as an address of S3. Raises DataError
    when the file is missing, is not a Shoal dataset, has another layout version, or declares what it does not hold.
    """
    try:
        file = h5py.File(path if content is None else content, "r")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; `shoal preprocess` makes a dataset") from None
    except OSError as error:
        if Path(path).is_dir():
            raise DataError(f"{path} is a folder; name the dataset in it, such as {path}/dataset.h5") from error
        reason = " ".join((error.strerror or str(error)).split())
        raise DataError(f"{path} is not an HDF5 file, or is damaged: {reason}; {_MAKE_AGAIN}") from error
    try:
        if content is not None:
            return _read(path, file, content)
        with Path(path).open("rb") as opened:
            return _read(path, file, opened)
    except BaseException:
        file.close()
        raise


def _read(path: Path | str, file: h5py.File, content: BinaryIO) -> Dataset:
    # A damaged file makes HDF5 raise any of these errors; their messages name the place.
    try:
        version = file_checks.read_layout_version(file)
        if version == LAYOUT_VERSION:
            return _opened(path, file, content)
    except (
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
        OSError,
        RuntimeError,
        MemoryError,
        DataError,
    ) as error:
        raise DataError(f"{path} is damaged: {' '.join(str(error).split())}; {_MAKE_AGAIN}") from error
    if version is None:
        raise DataError(f"{path} is an HDF5 file, but not a Shoal dataset; `shoal preprocess` makes one")
    raise DataError(f"{path} has layout version {version}, and this Shoal reads {LAYOUT_VERSION}; {_MAKE_AGAIN}")


def _opened(path: Path | str, file: h5py.File, content: BinaryIO) -> Dataset:
    settings = file_checks.read_settings(file)
    train, test = (
        Split(name, *(StoredArray(file_checks.read_array(file, name, column), path) for column in columns(settings)))
        for name in SPLITS
    )
    for split in (train, test):
        if len({len(getattr(split, name)) for name in ARRAYS}) > 1:
            raise DataError(f"the arrays of /{split.name} differ in length")
    vocabulary = file_checks.read_words(file, "vocabulary", content)
    if len(vocabulary) > settings.vocabulary_size:
        raise DataError(f"it has {len(vocabulary):,} words, but its vocabulary size is {settings.vocabulary_size:,}")
    return Dataset(
        path=path,
        train=train,
        test=test,
        vocabulary=vocabulary,
        stopwords=frozenset(file_checks.read_words(file, "stopwords", content)),
        settings=settings,
        counts=file_checks.read_counts(file),
        digest=file_checks.read_digest(file),
        _file=file,
    )
