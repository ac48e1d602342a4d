"""Compresses and decompresses chunks of a dataset in threads, in the format of HDF5's shuffle and deflate filters.

Any HDF5 library can read the chunks. HDF5's own filters are slower: they process one chunk at a time under a lock, and
use zlib's default strategy, which searches for repeated strings. Word ids have no such strings, and the search takes
most of the time. In this module, zlib searches only for runs of equal bytes (the padding of short rows), which is
faster and results in a smaller file. For measurements, see benchmarks/results/preprocessing.md, "The file".
"""

import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from common.cores import cores
from common.errors import DataError

FILTERS = {"shuffle": True, "compression": "gzip", "compression_opts": 1}

# Eight threads are fast enough: the digest on one core, or reading from a shared folder, is then the bottleneck. More
# threads would only use more memory.
_THREADS = min(8, cores())
_AHEAD = 2 * _THREADS

Array = npt.NDArray[Any]


def pack_chunk(chunk: Array) -> bytes:
    """Compress a contiguous chunk as FILTERS do.

    The shuffle filter puts the first bytes of all values before all second bytes, and so on. The deflate filter
    compresses the result.
    """
    flat = chunk.reshape(-1)
    planes = np.empty((chunk.dtype.itemsize, flat.size), np.uint8)
    for number, plane in enumerate(planes):
        np.right_shift(flat, 8 * number, out=plane, casting="unsafe")
    deflate = zlib.compressobj(level=1, strategy=zlib.Z_RLE)
    return deflate.compress(planes.data) + deflate.flush()


def unpack_chunk(stored: bytes, out: Array, whole: int) -> None:
    """Decompress a chunk, and copy its first rows to the contiguous array `out`.

    `whole` is the decompressed size of the chunk in bytes. Raises OSError, as HDF5 does, if the chunk is damaged or has
    a different decompressed size.
    """
    flat, inflate = out.reshape(-1), zlib.decompressobj()
    try:
        plain = inflate.decompress(stored, whole + 1)
        if len(plain) != whole or not inflate.eof:
            raise OSError(f"a chunk does not have {whole} bytes after decompression")
        planes = np.frombuffer(plain, np.uint8).reshape(out.dtype.itemsize, -1)[:, : flat.size]
        flat[:] = planes[-1]
        for plane in planes[-2::-1]:
            flat <<= 8
            flat |= plane
    except (zlib.error, ValueError) as error:
        raise OSError(f"a chunk is not valid deflate data: {error}") from error


class ChunkWriter:
    """Writer of whole chunks to HDF5 datasets, in the order of the calls, without HDF5's own filters and chunk cache.

    If `packed` is true, the datasets must have been created with FILTERS, and threads compress chunks before they are
    written. Then at most two chunks per thread are in memory. If `packed` is false, the datasets must have no filters.
    """

    def __init__(self, *, packed: bool) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "pack") if packed else None
        self._packing: deque[tuple[h5py.Dataset, int, Future[bytes]]] = deque()

    def put(self, array: h5py.Dataset, first: int, chunk: Array) -> None:
        """Write `chunk` as the chunk of `array` that begins at row `first`.

        Do not modify `chunk` after the call, because it might be written later.
        """
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
        """Stop the threads. Chunks that are not yet written are discarded."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _write_oldest(self) -> None:
        array, first, packing = self._packing.popleft()
        _write(array, first, packing.result())


class StoredArray:
    """Array in a dataset file. Slicing reads the rows from disk, and threads decompress their chunks.

    If the file is damaged, slicing raises DataError with the name of the file, `file`.
    """

    def __init__(self, array: h5py.Dataset, file: Path | str) -> None:
        self._array = array
        self._file = file
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype[Any] = array.dtype
        self.chunk_rows: int = array.chunks[0]
        self.packing = " and ".join(name for name in (array.shuffle and "shuffle", array.compression) if name) or "none"
        """Names of the filters of the array's chunks, or "none"."""
        self.chunk_bytes: int = prod(array.chunks) * array.dtype.itemsize
        """Decompressed size of each chunk, in bytes."""
        self._packed = self.packing == "shuffle and gzip"
        self._cached: tuple[int, Array] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        start, end, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("a slice of rows must not have a step")
        try:
            return self._unpacked(start, max(start, end)) if self._packed else np.asarray(self._array[start:end])
        except (OSError, RuntimeError) as error:
            raise self.damage(f"is unreadable: {error}") from error

    def damage(self, what: str) -> DataError:
        """Return the error for a damaged file. `what` is a predicate that describes the damage of this array."""
        return DataError(f"{self._file} is damaged: {self._array.name} {what}; recreate it with `shoal preprocess`")

    def _unpacked(self, start: int, end: int) -> Array:
        out = np.empty((end - start, *self.shape[1:]), self.dtype)
        unpacking: deque[Future[None]] = deque()
        with ThreadPoolExecutor(_THREADS, "unpack") as threads:
            for first in range(start - start % self.chunk_rows, end, self.chunk_rows):
                after = min(first + self.chunk_rows, len(self))
                if start <= first and after <= end:
                    place = out[first - start : after - start]
                    unpacking.append(threads.submit(unpack_chunk, self._stored(first), place, self.chunk_bytes))
                else:
                    chunk, begin, stop = self._chunk(first, after), max(first, start), min(after, end)
                    out[begin - start : stop - start] = chunk[begin - first : stop - first]
                if len(unpacking) > _AHEAD:
                    unpacking.popleft().result()
            while unpacking:
                unpacking.popleft().result()
        return out

    def _chunk(self, first: int, after: int) -> Array:
        """Return the chunk with the rows [`first`, `after`).

        It is cached, because the next slice often begins in the same chunk.
        """
        if self._cached is None or self._cached[0] != first:
            chunk = np.empty((after - first, *self.shape[1:]), self.dtype)
            unpack_chunk(self._stored(first), chunk, self.chunk_bytes)
            self._cached = first, chunk
        return self._cached[1]

    def _stored(self, first: int) -> bytes:
        skipped, stored = self._array.id.read_direct_chunk((first, *(0 for _ in self.shape[1:])))
        if skipped:
            raise OSError("a chunk is stored without one of its filters")
        return bytes(stored)


def _write(array: h5py.Dataset, first: int, stored: Array | bytes) -> None:
    array.id.write_direct_chunk((first, *(0 for _ in array.shape[1:])), stored)
