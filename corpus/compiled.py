"""Functions that numba compiles, and keeps compiled for the next process.

It keeps them beside Python's own bytecode or, where that folder is not ours to write to, in the user's own cache: who
could change them there could change what Python runs anyway. The easy mistake is to need such a folder: where there is
none, numba refuses.
"""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled when it is called with arrays of new types. It lets other threads run meanwhile."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder: each process compiles for itself
        return njit(nogil=True)(function)
