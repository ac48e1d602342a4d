"""Defines a decorator with which numba compiles a function and caches the compiled code for later processes.

The cache is in Python's bytecode folder or, if that is read-only, in the user's cache folder. Anyone who can modify
these folders can already modify the code that Python runs.
"""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any], *, reordered: bool = False) -> Callable[..., Any]:
    """Return a version of the function that numba compiles on the first call with each combination of array types.

    The compiled function releases the GIL.

    `reordered`: allow the compiler to reorder floating-point sums (SIMD), which changes the last bits of a result.
    """
    fastmath = {"arcp", "contract", "nsz", "reassoc"} if reordered else False  # no `nnan`: NaN must propagate
    try:
        return njit(cache=True, nogil=True, fastmath=fastmath)(function)
    except RuntimeError:  # numba found no writable cache folder
        return njit(nogil=True, fastmath=fastmath)(function)
