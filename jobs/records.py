"""The records between the jobs (lines of a key, a tab and a value), the arrays in them, and the names of the files of
each part.

Split a record at its first tab only, because a value may hold tabs. NumPy's own format of arrays takes more time for
its headers than for the small arrays of the shuffle.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from pybase64 import b64decode, b64encode

from corpus.reading.storage import PART_PREFIX, join

Record = tuple[bytes, bytes]
Arrays = dict[str, npt.NDArray[Any]]

_ENTRY = struct.Struct("<8s2sxxxxxxQ")


def read_records(lines: Iterable[bytes]) -> Iterator[Record]:
    """The lines of a job's output as keys and values; a line without a tab is a key alone."""
    for line in lines:
        key, _, value = line.rstrip(b"\n").partition(b"\t")
        yield key, value


def part_name(number: int) -> str:
    """The name of a part; names are in the order of the parts."""
    return f"{number:04x}"


def part_url(folder: str, part: str) -> str:
    return join(folder, f"{PART_PREFIX}{part}.h5")


def side_url(folder: str, part: str) -> str:
    """The address of a side file, which `jobs.deduplicate` writes for a part and `jobs.encode` reads."""
    return join(folder, f"{PART_PREFIX}{part}.bin")


def pack_arrays(arrays: Arrays) -> list[bytes | memoryview]:
    """One-dimensional arrays, by names of up to 8 letters, as bytes; the same arrays always make the same bytes.

    The result is in pieces, so that no array is copied.
    """
    header = b"".join(
        _ENTRY.pack(name.encode(), array.dtype.str[1:].encode(), len(array)) for name, array in arrays.items()
    )
    pieces = [np.ascontiguousarray(array).data for array in arrays.values() if len(array)]
    return [struct.pack("<Q", len(arrays)) + header, *pieces]


def unpack_arrays(packed: bytes) -> Arrays:
    """The inverse of `pack_arrays`; the arrays are views of the bytes and cannot be written to."""
    (count,) = struct.unpack_from("<Q", packed)
    at = struct.calcsize("<Q") + count * _ENTRY.size
    arrays: Arrays = {}
    for name, dtype, length in _ENTRY.iter_unpack(packed[struct.calcsize("<Q") : at]):
        array = np.frombuffer(packed, dtype.decode(), length, at)
        arrays[name.rstrip(b"\0").decode()] = array
        at += array.nbytes
    return arrays


def block_of(arrays: Arrays) -> bytes:
    """Arrays as the value of a record."""
    return b64encode(b"".join(pack_arrays(arrays)))


def arrays_of(block: bytes) -> Arrays:
    """The inverse of `block_of`."""
    return unpack_arrays(b64decode(block, validate=True))
