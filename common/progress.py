"""Progress of a command. Code reports it to the reporter of the context, and the command chooses the reporter.

    with reporting(to):
        reporter().stage("send the dataset", size, "B")
        reporter().add(len(chunk))

A new thread has no reporter of its context: pass a method of `reporter()` to it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from common.display import printable


class ProgressReporter:
    """Reporter that prints notes on standard error, and shows nothing else. Subclasses show the progress, too."""

    def stage(self, name: str, total: int = 0, unit: str | None = None) -> None:
        """Start a stage with `total` units of work. If the total is 0, it is unknown, and only the time is shown; the
        same stage is then not started again."""

    def begin_at(self, done: int) -> None:
        """Start or restart the stage with `done` units already finished. The speed does not count these units."""

    def at(self, done: int) -> None:
        """Set the finished units to `done`. The progress never exceeds the total and never moves back."""

    def add(self, more: int) -> None:
        """Add `more` finished units."""

    def pace(self, rate: float) -> None:
        """Set the speed in units per second, from which the remaining time is computed."""

    def tick(self) -> None:
        """Update the times that are shown."""

    def say(self, **figures: str) -> None:
        """Show figures next to the progress."""

    def leave(self) -> None:
        """End the stage, although its work is not finished."""

    def note(self, text: str) -> None:
        """Print a message that remains on the screen."""
        print(f"  {printable(text)}", file=sys.stderr, flush=True)  # noqa: T201


Reporter = TypeVar("Reporter", bound=ProgressReporter)
_CURRENT: ContextVar[ProgressReporter] = ContextVar("reporter", default=ProgressReporter())  # noqa: B039


def reporter() -> ProgressReporter:
    """Return the reporter of the context."""
    return _CURRENT.get()


@contextmanager
def reporting(to: Reporter) -> Iterator[Reporter]:
    """Report progress to `to` for a block, which gets `to`."""
    token = _CURRENT.set(to)
    try:
        yield to
    finally:
        _CURRENT.reset(token)
