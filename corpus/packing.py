"""How the chunks of a dataset are packed: as HDF5's own shuffle and deflate filters do it, but by threads, and better.

Any HDF5 library unpacks them. HDF5 itself packs and unpacks one chunk at a time under one lock, and with zlib's default
strategy, which looks for repeated strings: there are none among the ids of words, and the search costs more than all
the rest. Here only runs are looked for (the padding of short rows), so that packing is faster and the file smaller
(docs/benchmarks.md, "HDF5"). The easy mistake is to shuffle across chunks: HDF5 unpacks each of them on its own.
"""

import os
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from corpus.errors import DataError

FILTERS = {"shuffle": True, "compression": "gzip", "compression_opts": 1}

_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# Eight pack, and unpack, as fast as one core takes the digest and a shared folder reads: more would only take memory.
_THREADS = min(8, _CORES)
_AHEAD = 2 * _THREADS

Array = npt.NDArray[Any]


def pack_chunk(chunk: Array) -> bytes:
    """A contiguous chunk as the filters of FILTERS store it: all first bytes, all second bytes, ..., deflated."""
    flat = chunk.reshape(-1)
    planes = np.empty((chunk.dtype.itemsize, flat.size), np.uint8)
    for number, plane in enumerate(planes):
        np.right_shift(flat, 8 * number, out=plane, casting="unsafe")
    deflate = zlib.compressobj(level=1, strategy=zlib.Z_RLE)
    return deflate.compress(planes.data) + deflate.flush()


def unpack_chunk(stored: bytes, out: Array, whole: int) -> None:
    """The inverse of `pack`, for the first rows of a chunk: as many as `out`, which is contiguous, has.

    `whole`: the bytes of the chunk, unpacked. Raises OSError, as HDF5 does, for a damaged chunk
    and for one of another size.
    """
    flat, inflate = out.reshape(-1), zlib.decompressobj()
    try:
        plain = inflate.decompress(stored, whole + 1)
        if len(plain) != whole or not inflate.eof:
            raise OSError(f"a chunk is no {whole} bytes when it is unpacked")
        planes = np.frombuffer(plain, np.uint8).reshape(out.dtype.itemsize, -1)[:, : flat.size]
        flat[:] = planes[-1]
        for plane in planes[-2::-1]:
            flat <<= 8
            flat |= plane
    except (zlib.error, ValueError) as error:
        raise OSError(f"a chunk cannot be unpacked: {error}") from error


class ChunkWriter:
    """Puts whole chunks into HDF5 datasets, past HDF5's filters and chunk cache, in the order in which they come.

    With `packed` the datasets must have been created with FILTERS, and threads pack ahead: two chunks of each at most
    are in memory. Without, the datasets have no filters.
    """

    def __init__(self, *, packed: bool) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "pack") if packed else None
        self._packing: deque[tuple[h5py.Dataset, int, Future[bytes]]] = deque()

    def put(self, array: h5py.Dataset, first: int, chunk: Array) -> None:
        """Write `chunk` to the chunk of `array` that begins at row `first`, now or soon; nobody may change it then."""
        if self._threads is None:
            _write(array, first, chunk)
            return
        self._packing.append((array, first, self._threads.submit(pack_chunk, chunk)))
        if len(self._packing) > _AHEAD:
            self._write_oldest()

    def finish(self) -> None:
        """Wait until all chunks are written."""
        while self._packing:
            self._write_oldest()

    def close(self) -> None:
        """End the threads; chunks that are not written by now never will be."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _write_oldest(self) -> None:
        array, first, packing = self._packing.popleft()
        _write(array, first, packing.result())


class StoredArray:
    """An array in a file, read from disk as it is sliced by rows; packed chunks are unpacked by threads.

    A slice raises DataError where the file, which is called `file` then, is damaged.
    """

    def __init__(self, array: h5py.Dataset, file: Path | str) -> None:
        self._array = array
        self._file = file
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype[Any] = array.dtype
        self.chunk_rows: int = array.chunks[0]
        self.packing = " and ".join(name for name in (array.shuffle and "shuffle", array.compression) if name) or "none"
        """The filters that its chunks went through."""
        self.stored_bytes: int = array.id.get_storage_size()
        self._packed = self.packing == "shuffle and gzip"
        self._chunk_bytes = prod(array.chunks) * array.dtype.itemsize
        self._kept: tuple[int, Array] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        start, end, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("rows are read one after the other, without steps")
        try:
            return self._unpacked(start, max(start, end)) if self._packed else np.asarray(self._array[start:end])
        except (OSError, RuntimeError) as error:
            raise DataError(
                f"{self._file} is damaged: {self._array.name} cannot be read: {error}; "
                "make it again by `shoal preprocess`"
            ) from error

    def _unpacked(self, start: int, end: int) -> Array:
        out = np.empty((end - start, *self.shape[1:]), self.dtype)
        unpacking: deque[Future[None]] = deque()
        with ThreadPoolExecutor(_THREADS, "unpack") as threads:
            for first in range(start - start % self.chunk_rows, end, self.chunk_rows):
                after = min(first + self.chunk_rows, len(self))
                if start <= first and after <= end:
                    place = out[first - start : after - start]
                    unpacking.append(threads.submit(unpack_chunk, self._stored(first), place, self._chunk_bytes))
                else:
                    chunk, begin, stop = self._chunk(first, after), max(first, start), min(after, end)
                    out[begin - start : stop - start] = chunk[begin - first : stop - first]
                if len(unpacking) > _AHEAD:
                    unpacking.popleft().result()
            while unpacking:
                unpacking.popleft().result()
        return out

    def _chunk(self, first: int, after: int) -> Array:
        """The chunk of the rows from `first` to before `after`; kept, as the next slice often begins within it."""
        if self._kept is None or self._kept[0] != first:
            chunk = np.empty((after - first, *self.shape[1:]), self.dtype)
            unpack_chunk(self._stored(first), chunk, self._chunk_bytes)
            self._kept = first, chunk
        return self._kept[1]

    def _stored(self, first: int) -> bytes:
        skipped, stored = self._array.id.read_direct_chunk((first, *(0 for _ in self.shape[1:])))
        if skipped:
            raise OSError("a chunk did not go through all filters")
        return bytes(stored)


def _write(array: h5py.Dataset, first: int, stored: Array | bytes) -> None:
    array.id.write_direct_chunk((first, *(0 for _ in array.shape[1:])), stored)
