"""A decorator for functions that numba compiles and caches for the next process.

The cache is beside Python's bytecode or, where that folder cannot be written to, in the user's own cache. Who could
change it there could change what Python runs anyway.
"""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any], *, reordered: bool = False) -> Callable[..., Any]:
    """The function, compiled at its first call with each combination of array types. It releases the GIL.

    `reordered`: the processor may add up several numbers of a sum at once: another order of additions, and so another
    last bit, than the loop has as it stands.
    """
    fastmath = {"arcp", "contract", "nsz", "reassoc"} if reordered else False  # but NaN stays NaN
    try:
        return njit(cache=True, nogil=True, fastmath=fastmath)(function)
    except RuntimeError:  # numba found no folder for its cache: each process compiles for itself
        return njit(nogil=True, fastmath=fastmath)(function)
