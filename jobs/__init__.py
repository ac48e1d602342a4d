"""Raw reviews to one encoded dataset: the same MapReduce scripts on one machine and on a cluster.

The jobs never know where they run: what differs between runners stays in `pipeline` and in the launcher.

For programs: `from jobs import preprocess` (`interface.py`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.interface import Merged, Settings, preprocess

__all__ = ["Merged", "Settings", "preprocess"]


def __getattr__(name: str) -> Any:
    """Import the interface for programs when it is asked for: nodes have not all that it needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from jobs import interface

    return getattr(interface, name)
