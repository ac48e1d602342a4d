"""A guard that deletes a CDK stack at a maximum age or budget, and a sweep that lists what a stack left behind.

    from shoal_guard import Guard

    Guard(stack, "Guard", max_hours=8, budget=20, mail="me@example.org", dollars_an_hour=0.05)

The constructs need the CDK and therefore Node.js; `left_of` needs only boto3. Each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal_guard.clean_bucket import CleanBucket
    from shoal_guard.errors import SweepError
    from shoal_guard.guard import Guard
    from shoal_guard.left import Leftover, left_of

__all__ = ["CleanBucket", "Guard", "Leftover", "SweepError", "left_of"]
_MODULES = {
    "CleanBucket": "clean_bucket",
    "Guard": "guard",
    "Leftover": "left",
    "SweepError": "errors",
    "left_of": "left",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"shoal_guard.{_MODULES[name]}"), name)
