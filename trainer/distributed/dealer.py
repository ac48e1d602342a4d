"""Deals the steps of an epoch to ranks that take them one by one, each as soon as it is free (asynchronous.py).

The first rank has the dealer; all ranks ask it, in threads of their own. It gives no step that is more than `bound`
ahead of the oldest one that is not finished: whoever asks for it waits. So a gradient is never older than the steps of
`bound` and those that other ranks had begun already.
"""

from collections.abc import Callable
from threading import Condition
from typing import NamedTuple

_LOOK_SECONDS = 0.5


class Finished(NamedTuple):
    """A step that a rank has finished."""

    rank: int
    step: int
    loss: float
    rows: int
    seconds: float
    """Of computing."""


class Dealer:
    """Deals the steps from `first` to `last` - 1, until it is asked to end."""

    def __init__(self, *, first: int, last: int, bound: int, is_due: Callable[[int], bool]) -> None:
        """`is_due`: whether to end for now, after so many finished steps."""
        self._next, self._last, self._bound, self._is_due = first, last, bound, is_due
        self._finished = first
        self._open: set[int] = set()
        self._reports: list[Finished] = []
        self._changed = Condition()
        self.ended = False
        """Whether no more steps are dealt."""

    def take(self, finished: Finished | None, stop: bool) -> int | None:
        """The next step for a rank, which has `finished` its last one, if it had one; None: there is none for now.
        `stop`: whether the rank was asked to stop."""
        with self._changed:
            if finished is not None:
                self._open.remove(finished.step)
                self._finished += 1
                self._reports.append(finished)
            self.ended = self.ended or stop
            self._changed.notify_all()
            # A rank that is lost finishes no step, and nobody would notify: so the one that waits looks by itself, too.
            while not self._changed.wait_for(lambda: self._may_answer, timeout=_LOOK_SECONDS):
                pass
            if self.ended or self._next == self._last:
                return None
            self._open.add(self._next)
            self._next += 1
            return self._next - 1

    def end(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def take_reports(self) -> list[Finished]:
        """The steps that were finished since the last call."""
        with self._changed:
            found, self._reports = self._reports, []
            return found

    @property
    def _may_answer(self) -> bool:
        self.ended = self.ended or self._is_due(self._finished)
        is_near = not self._open or self._next - min(self._open) <= self._bound
        return self.ended or self._next == self._last or is_near
