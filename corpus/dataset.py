"""The HDF5 layout of an encoded dataset: write, read, check (docs/dataset.md, "The file").

The easy mistake is one row a chunk: writing and reading get slower by an order of magnitude. Chunks here
hold about 1 MiB of whole rows. h5py files must be opened inside a worker process, never before a fork.
"""

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import uuid4

import h5py
import numpy as np
import numpy.typing as npt

from corpus.errors import DataError
from corpus.settings import Settings
from corpus.text import UNKNOWN

LAYOUT_VERSION = 1
SPLITS = ("train", "test")
ARRAYS = ("tokens", "lengths", "labels", "ratings")

_CHUNK_BYTES = 1 << 20
_BLOCK_ROWS = 1 << 16
_STRING = h5py.string_dtype("utf-8")


class Rows(NamedTuple):
    """N rows of one split. `tokens` (N, L) ids padded with 0; `lengths`, `labels`, `ratings` (N,)."""

    tokens: npt.NDArray[Any]
    lengths: npt.NDArray[np.uint16]
    labels: npt.NDArray[np.uint8]
    ratings: npt.NDArray[np.uint8]


class DatasetWriter:
    """Writes a dataset block by block, in bounded memory; under its final name it appears whole or not at all.

    Use as a context manager: `append` rows in their final order, then `finish` once. Without `finish`
    (an error, Ctrl-C) nothing is left behind. The same rows in other blocks make the same bytes.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path = path
        self.settings = settings
        # Twin attempts of one task may write the same file at once, so each has a partial file of its own.
        self._partial = path.with_name(f".{path.name}.{uuid4().hex}.partial")
        self.rows = dict.fromkeys(SPLITS, 0)
        self._hashes = {name: blake2b(digest_size=16) for name in _array_names()}

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = h5py.File(self._partial, "w")
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {_cause(error)}") from error
        for split in SPLITS:
            for name, dtype, width in self._layout():
                shape, row_bytes = ((0,), dtype.itemsize) if width is None else ((0, width), dtype.itemsize * width)
                self._file.create_dataset(
                    f"{split}/{name}",
                    shape=shape,
                    maxshape=(None, *shape[1:]),
                    dtype=dtype,
                    chunks=(max(1, _CHUNK_BYTES // row_bytes), *shape[1:]),
                    compression="gzip",
                    compression_opts=1,
                    shuffle=True,
                )
        return self

    def append(self, split: str, rows: Rows) -> None:
        """Add rows to the end of a split. Raises DataError when the disk is full."""
        for (name, dtype, _), values in zip(self._layout(), rows, strict=True):
            block = np.ascontiguousarray(values, dtype=dtype)
            self._hashes[f"{split}/{name}"].update(block.data)
            array = self._file[f"{split}/{name}"]
            start = array.shape[0]
            with _FullDisk(self.path):
                array.resize(start + len(block), axis=0)
                array[start:] = block
        self.rows[split] += len(rows.labels)

    def finish(self, *, vocabulary: Sequence[str], stopwords: frozenset[str], counts: Mapping[str, Any]) -> str:
        """Add what describes the rows, put the file under its name, and return the digest of its arrays."""
        digest = _digest(self._hashes, vocabulary)
        with _FullDisk(self.path):
            self._file.create_dataset("vocabulary", data=list(vocabulary), dtype=_STRING)
            self._file.create_dataset("stopwords", data=sorted(stopwords), dtype=_STRING)
            self._file.attrs["layout_version"] = LAYOUT_VERSION
            self._file.attrs["settings"] = json.dumps(asdict(self.settings))
            self._file.attrs["counts"] = json.dumps(counts)
            self._file.attrs["digest"] = digest
            self._file.close()
        self._partial.replace(self.path)
        return digest

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except (OSError, RuntimeError):
            if error is None:
                raise
        finally:
            self._partial.unlink(missing_ok=True)

    def _layout(self) -> tuple[tuple[str, np.dtype[Any], int | None], ...]:
        return (
            ("tokens", self.settings.token_dtype, self.settings.row_length),
            ("lengths", np.dtype(np.uint16), None),
            ("labels", np.dtype(np.uint8), None),
            ("ratings", np.dtype(np.uint8), None),
        )


@dataclass(frozen=True)
class Split:
    """One split of an open dataset; the arrays are read from disk as they are sliced."""

    name: str
    tokens: h5py.Dataset
    lengths: h5py.Dataset
    labels: h5py.Dataset
    ratings: h5py.Dataset

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    def blocks(self) -> Iterator[Rows]:
        """The rows in order, in blocks of bounded size."""
        for start in range(0, len(self), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            yield Rows(self.tokens[block], self.lengths[block], self.labels[block], self.ratings[block])


@dataclass
class Dataset:
    """An open dataset file; a context manager that closes it."""

    path: Path
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
        """The digest of the arrays as they are on disk now; differs from `digest` when the file was damaged."""
        hashes = {name: blake2b(digest_size=16) for name in _array_names()}
        for split in (self.train, self.test):
            for rows in split.blocks():
                for name, values in zip(ARRAYS, rows, strict=True):
                    hashes[f"{split.name}/{name}"].update(np.ascontiguousarray(values).data)
        return _digest(hashes, self.vocabulary)


def open_dataset(path: Path | str) -> Dataset:
    """Open a dataset for reading, checking its layout.

    Raises DataError when the file is missing, is no Shoal dataset, or has another layout version.
    """
    path = Path(path)
    try:
        file = h5py.File(path, "r")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; `shoal preprocess` makes a dataset") from None
    except OSError as error:
        raise DataError(f"{path} is no HDF5 file, or a damaged one: {_cause(error)}") from error
    try:
        return _read(path, file)
    except BaseException:
        file.close()
        raise


def write_dataset(
    path: Path,
    *,
    train: Rows,
    test: Rows,
    vocabulary: Sequence[str],
    settings: Settings,
    stopwords: frozenset[str] = frozenset(),
    counts: Mapping[str, Any] | None = None,
) -> str:
    """Write a dataset that fits in memory; returns the digest of its arrays."""
    with DatasetWriter(path, settings) as writer:
        writer.append("train", train)
        writer.append("test", test)
        return writer.finish(vocabulary=vocabulary, stopwords=stopwords, counts=counts or {})


def _read(path: Path, file: h5py.File) -> Dataset:
    version = file.attrs.get("layout_version")
    if version is None:
        raise DataError(f"{path} is an HDF5 file, but no Shoal dataset; `shoal preprocess` makes one")
    if version != LAYOUT_VERSION:
        raise DataError(
            f"{path} has layout version {version}, and this Shoal reads {LAYOUT_VERSION}; "
            "make it again by `shoal preprocess`"
        )
    try:
        written = json.loads(file.attrs["settings"])
        settings = Settings(**{**written, "rating_range": tuple(written["rating_range"])})
        splits = [Split(split, *(file[f"{split}/{name}"] for name in ARRAYS)) for split in SPLITS]
        dataset = Dataset(
            path=path,
            train=splits[0],
            test=splits[1],
            vocabulary=list(file["vocabulary"].asstr()[:]),
            stopwords=frozenset(file["stopwords"].asstr()[:]),
            settings=settings,
            counts=json.loads(file.attrs["counts"]),
            digest=str(file.attrs["digest"]),
            _file=file,
        )
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise DataError(f"{path} is damaged: {error}; make it again by `shoal preprocess`") from error
    for split in splits:
        rows = len(split)
        if split.tokens.shape != (rows, settings.row_length) or any(
            getattr(split, name).shape != (rows,) for name in ARRAYS[1:]
        ):
            raise DataError(f"{path} is damaged: the arrays of /{split.name} differ in length; make it again")
    return dataset


def count_rows(train: Rows, test: Rows) -> dict[str, int]:
    """The counts that the rows themselves give: sizes, positives, words and unknown ones (of both splits)."""
    return {
        "train": len(train.labels),
        "test": len(test.labels),
        "positive_train": int(train.labels.sum()),
        "positive_test": int(test.labels.sum()),
        "tokens": int(train.lengths.sum(dtype=np.int64)) + int(test.lengths.sum(dtype=np.int64)),
        "unknown_tokens": int((train.tokens == UNKNOWN).sum()) + int((test.tokens == UNKNOWN).sum()),
    }


class _FullDisk:
    """Turns "no space left", however HDF5 words it, into a sentence for the user."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | RuntimeError) and is_full_disk(error):
            raise DataError(
                f"no space left on the device of {self._path}; free some, or choose another --output"
            ) from error


def is_full_disk(error: BaseException) -> bool:
    """Whether an error says that the disk is full; HDF5 says so in its text alone."""
    return getattr(error, "errno", None) == errno.ENOSPC or f"errno = {errno.ENOSPC}," in str(error)


def _cause(error: OSError) -> str:
    return error.strerror or str(error)


def _array_names() -> list[str]:
    return [f"{split}/{name}" for split in SPLITS for name in ARRAYS]


def _digest(hashes: Mapping[str, Any], vocabulary: Sequence[str]) -> str:
    """One digest of all arrays: of their own digests, in the layout's order, and of the vocabulary."""
    whole = blake2b(digest_size=16)
    for name in _array_names():
        whole.update(name.encode() + b"\0" + hashes[name].digest())
    whole.update("\n".join(vocabulary).encode())
    return whole.hexdigest()
