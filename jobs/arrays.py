"""Converts arrays to bytes and back, for the shuffle and for the files between the jobs.

NumPy's own format takes more time for its headers than for the small arrays of the shuffle.
"""

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]

_ENTRY = struct.Struct("<8s2sxxxxxxQ")


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
