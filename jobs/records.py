"""Defines the records that the jobs exchange, the arrays in these records, and the file names of each part.

A record is a line with a key, a tab and a value. Split a record only at its first tab, because a value can contain
tabs. NumPy's own array format is not used, because its headers would take more time than the small arrays in the
shuffle.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from pybase64 import b64decode, b64encode

from corpus.reading.storage import PART_PREFIX, join

Record = tuple[bytes, bytes]
Arrays = dict[str, npt.NDArray[Any]]

_ENTRY = struct.Struct("<8s2sxxxxxxQ")
GATHERED = b"*"
"""Key of the records that one reducer receives."""


def read_records(lines: Iterable[bytes]) -> Iterator[Record]:
    """Yield the key and the value of each line of a job's output. A line without a tab is a key with an empty value."""
    for line in lines:
        key, _, value = line.rstrip(b"\n").partition(b"\t")
        yield key, value


def gathered(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records as values of one key, so that the next step gives all of them to one reducer."""
    for key, value in records:
        yield GATHERED, key + b"\t" + value


def part_name(number: int) -> str:
    """Return the name of the part with this number. Names sort in the order of the numbers."""
    return f"{number:04x}"


def part_url(folder: str, part: str) -> str:
    return join(folder, f"{PART_PREFIX}{part}.h5")


def texts_url(folder: str, part: str) -> str:
    """Return the address of the file with a part's distinct texts."""
    return join(folder, f"{PART_PREFIX}{part}.bin")


def pack_arrays(arrays: Arrays) -> list[bytes | memoryview]:
    """Pack one-dimensional arrays, with names of up to 8 letters, as bytes. Equal arrays produce equal bytes.

    The result is a list of pieces, so that no array is copied.
    """
    header = b"".join(
        _ENTRY.pack(name.encode(), array.dtype.str[1:].encode(), len(array)) for name, array in arrays.items()
    )
    pieces = [np.ascontiguousarray(array).data for array in arrays.values() if len(array)]
    return [struct.pack("<Q", len(arrays)) + header, *pieces]


def unpack_arrays(packed: bytes) -> Arrays:
    """Return the arrays that `pack_arrays` packed. The arrays are read-only views of `packed`."""
    (count,) = struct.unpack_from("<Q", packed)
    at = struct.calcsize("<Q") + count * _ENTRY.size
    arrays: Arrays = {}
    for name, dtype, length in _ENTRY.iter_unpack(packed[struct.calcsize("<Q") : at]):
        array = np.frombuffer(packed, dtype.decode(), length, at)
        arrays[name.rstrip(b"\0").decode()] = array
        at += array.nbytes
    return arrays


class StoredArray:
    """Array in an open file. Slicing reads the values from the file."""

    def __init__(self, file: BinaryIO, dtype: np.dtype[Any], offset: int) -> None:
        self.dtype = dtype
        self._file, self._offset = file, offset

    def __getitem__(self, values: slice) -> npt.NDArray[Any]:
        self._file.seek(self._offset + values.start * self.dtype.itemsize)
        return np.fromfile(self._file, self.dtype, values.stop - values.start)


def read_arrays(file: BinaryIO, stored: str) -> tuple[Arrays, StoredArray]:
    """Return the arrays that `pack_arrays` packed into the open file.

    The array with the name `stored` is not among them. It is the second value, and stays in the file.
    """
    (count,) = struct.unpack("<Q", file.read(struct.calcsize("<Q")))
    entries = {
        name.rstrip(b"\0").decode(): (np.dtype(dtype.decode()), length)
        for name, dtype, length in _ENTRY.iter_unpack(file.read(count * _ENTRY.size))
    }
    arrays, at = {}, file.tell()
    for name, (dtype, length) in entries.items():
        arrays[name] = StoredArray(file, dtype, at)
        at += length * dtype.itemsize
    chosen = arrays.pop(stored)
    return {name: array[0 : entries[name][1]] for name, array in arrays.items()}, chosen


def block_of(arrays: Arrays) -> bytes:
    """Encode arrays as the value of a record."""
    return b64encode(b"".join(pack_arrays(arrays)))


def arrays_of(block: bytes) -> Arrays:
    """Return the arrays that `block_of` encoded."""
    return unpack_arrays(b64decode(block, validate=True))
