"""A guard that deletes a CDK stack at a maximum age.

    from shoal_guard import Guard

    Guard(stack, "Guard", max_hours=8, mail="me@example.org")

The constructs need the CDK and therefore Node.js. Each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal_guard.clean_bucket import CleanBucket
    from shoal_guard.guard import Guard

__all__ = ["CleanBucket", "Guard"]
_MODULES = {"CleanBucket": "clean_bucket", "Guard": "guard"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"shoal_guard.{_MODULES[name]}"), name)
