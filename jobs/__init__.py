"""Makes one encoded dataset of raw reviews, by the same MapReduce scripts on one machine and on a cluster.

The jobs do not depend on where they run: `pipeline` and the launcher have what differs between runners.

For programs: `from jobs import preprocess` (`interface.py`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.interface import DEFAULT, MergeResult, Settings, preprocess

__all__ = ["DEFAULT", "MergeResult", "Settings", "preprocess"]


def __getattr__(name: str) -> Any:
    """Import the interface for programs when it is asked for: nodes have not all that it needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from jobs import interface

    return getattr(interface, name)
