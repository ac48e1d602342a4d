"""Writes a dataset file block by block, in bounded memory.

Do not write to the file under its final name. A task can die at any moment, and another attempt of the same task might
be writing the same file. Each writer has its own partial file, which is renamed when it is complete.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
import numpy.typing as npt

from common.errors import DataError, explain_full_disk
from common.files import partial_path
from corpus.dataset_settings import Settings
from corpus.layout import SPLITS, ArraysDigest, Column, RowBlock, columns, layout_version
from corpus.packing import FILTERS, ChunkWriter

_STRING = h5py.string_dtype("utf-8")


class DatasetWriter:
    """Writer of a dataset file, which appears under its final name completely or not at all.

    Use a DatasetWriter as a context manager: `append` rows in their final order, then call `finish` once. If `finish`
    is not called (after an error or Ctrl-C), no file remains. The bytes of the file do not depend on how the rows are
    divided into blocks. Set `packed` to false to write an uncompressed file, such as one that is read once and then
    deleted. `option` is the command-line option that chose the folder; the message about a full disk names this option.
    """

    def __init__(self, path: Path, settings: Settings, *, packed: bool = True, option: str = "--output") -> None:
        self.path = path
        self.settings = settings
        self.rows = dict.fromkeys(SPLITS, 0)
        self._tokens = dict.fromkeys(SPLITS, 0)
        self._packed = packed
        self._option = option
        self._partial = partial_path(path)
        self._digest = ArraysDigest(settings)
        self._columns = columns(settings)
        self._step = min(column.chunk_rows for column in self._columns)

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with explain_full_disk(self.path, self._option):
                self._file = h5py.File(self._partial, "w", locking=False)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror or error}") from error
        self._chunks = ChunkWriter(packed=self._packed)
        self._arrays = {
            (split, column.name): _Array(self._file, f"{split}/{column.name}", column, self._chunks, self._packed)
            for split in SPLITS
            for column in self._columns
        }
        return self

    def append(self, split: str, rows: RowBlock) -> None:
        """Add rows to the end of a split. Raises DataError if the disk is full."""
        count, done = len(rows.labels), 0
        with explain_full_disk(self.path, self._option):
            while done < count:
                # Add at most the rows until the end of the smallest chunk, so that chunks are written in the order of
                # their last rows.
                end = min(count, done + self._step - self.rows[split] % self._step)
                part = rows.part(done, end)
                arrays = part.stored(self._tokens[split])
                for column in self._columns:
                    values = np.ascontiguousarray(arrays[column.name], dtype=column.dtype)
                    self._digest.update(split, column.name, values)
                    self._arrays[split, column.name].append(values)
                self.rows[split] += end - done
                self._tokens[split] += len(part.tokens)
                done = end

    def finish(self, *, vocabulary: Sequence[str], stopwords: frozenset[str], counts: Mapping[str, Any]) -> str:
        """Write the metadata, rename the file to its final name, and return the digest of its arrays."""
        digest = self._digest.hexdigest(vocabulary)
        with explain_full_disk(self.path, self._option):
            for array in self._arrays.values():
                array.finish()
            self._chunks.finish()
            self._file.create_dataset("vocabulary", data=list(vocabulary), dtype=_STRING)
            self._file.create_dataset("stopwords", data=sorted(stopwords), dtype=_STRING)
            self._file.attrs["layout_version"] = layout_version(self.settings)
            self._file.attrs["settings"] = json.dumps(self.settings.to_json())
            self._file.attrs["counts"] = json.dumps(counts)
            self._file.attrs["digest"] = digest
            self._file.close()
            self._partial.replace(self.path)
        return digest

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._chunks.close()
        try:
            self._file.close()
        except (OSError, RuntimeError):
            if error is None:
                raise
        finally:
            self._partial.unlink(missing_ok=True)


class _Array:
    """Writer of one array of the file. Collects rows until a chunk is full.

    The array is created when its first chunk is full. An array with fewer rows than a chunk has one chunk, as large as
    the array.
    """

    def __init__(self, file: h5py.File, path: str, column: Column, chunks: ChunkWriter, packed: bool) -> None:
        self._file = file
        self._path = path
        self._column = column
        self._chunks = chunks
        self._filters = FILTERS if packed else {}
        self._array: h5py.Dataset | None = None
        self._written = 0
        self._chunk = self._new_chunk()
        self._filled = 0

    def append(self, values: npt.NDArray[Any]) -> None:
        while len(values):
            fitting, values = np.split(values, [len(self._chunk) - self._filled])
            self._chunk[self._filled : self._filled + len(fitting)] = fitting
            self._filled += len(fitting)
            if self._filled == len(self._chunk):
                self._put()

    def finish(self) -> None:
        """Write the rows of the last, incomplete chunk."""
        if self._array is None:
            self._chunk = self._chunk[: self._filled].copy()
            self._create(max(1, self._filled))
        if self._filled:
            self._chunk[self._filled :] = 0
            self._put()

    def _put(self) -> None:
        array = self._array if self._array is not None else self._create(len(self._chunk))
        array.resize(self._written + self._filled, axis=0)
        self._chunks.put(array, self._written, self._chunk)
        self._written += self._filled
        self._chunk, self._filled = self._new_chunk(), 0

    def _create(self, chunk_rows: int) -> h5py.Dataset:
        row = self._column.row
        self._array = self._file.create_dataset(
            self._path,
            shape=(0, *row),
            maxshape=(None, *row),
            dtype=self._column.dtype,
            chunks=(chunk_rows, *row),
            **self._filters,
        )
        return self._array

    def _new_chunk(self) -> npt.NDArray[Any]:
        return np.empty((self._column.chunk_rows, *self._column.row), self._column.dtype)


def write_dataset(
    path: Path,
    *,
    train: RowBlock,
    test: RowBlock,
    vocabulary: Sequence[str],
    settings: Settings,
    stopwords: frozenset[str] = frozenset(),
    counts: Mapping[str, Any] | None = None,
) -> str:
    """Write a dataset that fits into memory, and return the digest of its arrays."""
    with DatasetWriter(path, settings) as writer:
        writer.append("train", train)
        writer.append("test", test)
        return writer.finish(vocabulary=vocabulary, stopwords=stopwords, counts=counts or {})
