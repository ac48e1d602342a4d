"""Arrays as bytes: what the jobs send through the shuffle, and what they leave for each other beside it.

NumPy's own format spends more time on its headers than on arrays as small as those of the shuffle.
"""

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]

_ENTRY = struct.Struct("<8s2sxxxxxxQ")


def pack_arrays(arrays: Arrays) -> list[bytes | memoryview]:
    """One-dimensional arrays, by names of up to 8 letters, as bytes; the same arrays always make the same bytes.

    They come in pieces, so that nothing is copied.
    """
    header = b"".join(
        _ENTRY.pack(name.encode(), array.dtype.str[1:].encode(), len(array)) for name, array in arrays.items()
    )
    pieces = [np.ascontiguousarray(array).data for array in arrays.values() if len(array)]
    return [struct.pack("<Q", len(arrays)) + header, *pieces]


def unpack_arrays(packed: bytes) -> Arrays:
    """The inverse of `pack`; the arrays are views of the bytes and cannot be written to."""
    (count,) = struct.unpack_from("<Q", packed)
    at = struct.calcsize("<Q") + count * _ENTRY.size
    arrays: Arrays = {}
    for name, dtype, length in _ENTRY.iter_unpack(packed[struct.calcsize("<Q") : at]):
        array = np.frombuffer(packed, dtype.decode(), length, at)
        arrays[name.rstrip(b"\0").decode()] = array
        at += array.nbytes
    return arrays
