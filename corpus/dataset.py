"""Opens and reads an encoded dataset, which is one HDF5 file.

`corpus.writing` writes such a file, and `corpus.layout` defines its arrays and types. In a worker process, open the
file after the fork, because an h5py file must not be open during a fork.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

import h5py
import numpy as np
import numpy.typing as npt

from common.errors import DataError
from common.files import open_regular
from corpus import file_checks
from corpus.dataset_settings import DatasetSize, Settings
from corpus.layout import FIXED, MAX_ROW_WORDS, RAGGED, SPLITS, Array, ArraysDigest, RowBlock, columns, layout_version
from corpus.packing import StoredArray
from corpus.writing import DatasetWriter, write_dataset

__all__ = [
    "SPLITS",
    "Dataset",
    "DatasetWriter",
    "RowBlock",
    "Split",
    "open_dataset",
    "write_dataset",
]

_BLOCK_BYTES = 8 << 20
_RECREATE = "recreate it with `shoal preprocess`"


@dataclass(frozen=True)
class Split:
    """One split of an open dataset. `arrays` maps names to arrays, which are read from disk when they are sliced."""

    name: str
    arrays: dict[str, StoredArray]

    def __len__(self) -> int:
        return len(self.arrays["labels"])

    def blocks(self) -> Iterator[RowBlock]:
        """Yield all rows in order, in blocks of about 8 MiB.

        A block of fixed rows consists of whole chunks, unless one chunk is larger than a block. Raises DataError for
        damaged rows.
        """
        array = self.arrays["ends" if self._ragged else "tokens"]
        step = array.chunk_rows * max(1, _BLOCK_BYTES // array.chunk_bytes)
        for start in range(0, len(self), step):
            if self._ragged:
                yield from self._ragged_blocks(start, start + step)
            else:
                yield self.rows(start, start + step)

    def stored_blocks(self) -> Iterator[tuple[RowBlock, dict[str, Array]]]:
        """Yield each block of `blocks`, and the arrays that the file stores for the block's rows, by name."""
        before = 0
        for rows in self.blocks():
            yield rows, rows.stored(before)
            before += len(rows.tokens)

    def rows(self, start: int, end: int) -> RowBlock:
        """Return the rows in [`start`, `end`). Both indices must be at least 0. Raises DataError for damaged rows."""
        if self._ragged:
            return self._ragged_rows(start, self._ends(start, end))
        return RowBlock(*(self.arrays[name][start:end] for name in RowBlock._fields))

    @property
    def _ragged(self) -> bool:
        return "ends" in self.arrays

    def _ragged_blocks(self, start: int, end: int) -> Iterator[RowBlock]:
        ends = self._ends(start, end)
        most = _BLOCK_BYTES // self.arrays["tokens"].dtype.itemsize
        done = 0
        while done + 1 < len(ends):
            last = max(done + 1, int(np.searchsorted(ends, ends[done] + most, "right")) - 1)
            yield self._ragged_rows(start + done, ends[done : last + 1])
            done = last

    def _ragged_rows(self, start: int, ends: npt.NDArray[np.int64]) -> RowBlock:
        """Return the ragged rows from `start` on.

        `ends`, of shape (rows + 1,), has the offset at which the tokens of the first row begin, then the offset at
        which the tokens of each row end.
        """
        labels, ratings = (self.arrays[name][start : start + len(ends) - 1] for name in ("labels", "ratings"))
        return RowBlock(self.arrays["tokens"][ends[0] : ends[-1]], np.diff(ends), labels, ratings)

    def _ends(self, start: int, end: int) -> npt.NDArray[np.int64]:
        """Return token offsets of the rows in [`start`, `end`), of shape (rows + 1,).

        The first offset is the start of the first row, and the other offsets are the ends of the rows. Slice `tokens`
        only with these checked offsets. A damaged offset could select more tokens than fit into memory.
        """
        array, tokens = self.arrays["ends"], len(self.arrays["tokens"])
        start = min(start, len(self))
        end = max(start, min(end, len(self)))
        ends = array[start - 1 : end] if start else np.insert(array[:end], 0, 0)
        if not 0 <= int(ends.min()) <= int(ends.max()) <= tokens or (end == len(self) and ends[-1] != tokens):
            raise array.damage(f"does not end at the last of {tokens:,} tokens")
        lengths = np.diff(ends)
        if not ((lengths >= 1) & (lengths <= MAX_ROW_WORDS)).all():
            raise array.damage(f"has an empty row, or a row of more than {MAX_ROW_WORDS:,} tokens")
        return ends


@dataclass
class Dataset:
    """Open dataset file. Use a Dataset as a context manager, which closes the file."""

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

    @property
    def size(self) -> DatasetSize:
        """Numbers of rows, and words per row: the mean for ragged rows, otherwise the row length."""
        words = float(self.settings.row_length)
        if self.settings.ragged:
            words = len(self.train.arrays["tokens"]) / max(1, len(self.train))
        return DatasetSize(train=len(self.train), test=len(self.test), words=words)

    def computed_digest(self) -> str:
        """Compute and return the digest of the arrays on disk.

        It differs from the recorded `digest` if the file was changed. Raises DataError if the arrays are unreadable.
        """
        digest = ArraysDigest(self.settings)
        for split in (self.train, self.test):
            for _, arrays in split.stored_blocks():
                for name, values in arrays.items():
                    digest.update(split.name, name, values)
        return digest.hexdigest(self.vocabulary)

    def require_digest(self, found: str) -> None:
        """Raise DataError if the computed digest `found` differs from the recorded digest."""
        if found != self.digest:
            raise DataError(
                f"{self.path} changed after it was created: the digest of its arrays is {found}, but {self.digest} is "
                "recorded; fetch it again, or recreate it with `shoal preprocess`"
            )


def open_dataset(path: Path | str, content: BinaryIO | None = None) -> Dataset:
    """Open a dataset for reading, and check all its metadata with `corpus.file_checks`.

    If the seekable file `content` is given, the dataset is read from it, and `path` is only a name for messages, such
    as an S3 address. Raises DataError if the file is missing, is not a Shoal dataset, has an unsupported layout
    version, or declares data that it does not store.
    """
    try:
        # Open the file without HDF5's lock, which some network file systems refuse. No lock is needed, because a
        # dataset appears complete and never changes. https://docs.h5py.org/en/stable/high/file.html#h5py.File
        if content is None:
            open_regular(path).close()  # HDF5 would wait for a pipe
        file = h5py.File(path if content is None else content, "r", locking=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; create a dataset with `shoal preprocess`") from None
    except OSError as error:
        if Path(path).is_dir():
            raise DataError(f"{path} is a folder; name the dataset in it, such as {path}/dataset.h5") from error
        reason = " ".join((error.strerror or str(error)).split())
        raise DataError(f"{path} is not an HDF5 file, or is damaged: {reason}; {_RECREATE}") from error
    try:
        if content is not None:
            return _read(path, file, content)
        with Path(path).open("rb") as opened:
            return _read(path, file, opened)
    except BaseException:
        file.close()
        raise


def _read(path: Path | str, file: h5py.File, content: BinaryIO) -> Dataset:
    # HDF5 can raise any of these errors for a damaged file. Their messages say which part of the file is damaged.
    try:
        version = file_checks.read_layout_version(file)
        if version in (FIXED, RAGGED):
            return _opened(path, file, content, version)
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
        raise DataError(
            f"{path} is damaged, or of another version: {' '.join(str(error).split())}; {_RECREATE}"
        ) from error
    if version is None:
        raise DataError(f"{path} is an HDF5 file, but not a Shoal dataset; create one with `shoal preprocess`")
    raise DataError(
        f"{path} has layout version {version}, but this version of Shoal reads {FIXED} and {RAGGED}; {_RECREATE}"
    )


def _opened(path: Path | str, file: h5py.File, content: BinaryIO, version: int) -> Dataset:
    settings = file_checks.read_settings(file)
    if layout_version(settings) != version:
        raise DataError(f"its settings are those of layout version {layout_version(settings)}, not {version}")
    train, test = (_split(file, name, settings, path) for name in SPLITS)
    vocabulary = file_checks.read_words(file, "vocabulary", content, settings)
    if len(vocabulary) > settings.vocabulary_size:
        raise DataError(f"it has {len(vocabulary):,} words, but its vocabulary size is {settings.vocabulary_size:,}")
    return Dataset(
        path=path,
        train=train,
        test=test,
        vocabulary=vocabulary,
        stopwords=frozenset(file_checks.read_words(file, "stopwords", content, settings)),
        settings=settings,
        counts=file_checks.read_counts(file, settings),
        digest=file_checks.read_digest(file),
        _file=file,
    )


def _split(file: h5py.File, name: str, settings: Settings, path: Path | str) -> Split:
    found = {column.name: StoredArray(file_checks.read_array(file, name, column), path) for column in columns(settings)}
    rows, tokens = len(found["labels"]), len(found["tokens"])
    if len({len(found[column]) for column in found if column != "tokens" or not settings.ragged}) > 1:
        raise DataError(f"the arrays of /{name} differ in length")
    if tokens < rows or (tokens and not rows):
        raise DataError(f"/{name} has {rows:,} rows but {tokens:,} tokens")
    return Split(name, found)
