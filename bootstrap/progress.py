"""What a person sees of long work: one bar a stage, on standard error, and nothing at all where that is no terminal.

A program that wants to follow reads the records instead.
"""

from types import TracebackType
from typing import Any, Self

from tqdm import tqdm


class Bars:
    """The stages of one piece of work, one after the other; the bar of a finished one stays on the screen."""

    def __init__(self, unit: str = "B") -> None:
        self._unit = unit
        self._bar: tqdm[Any] | None = None
        self._name = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(finished=kind is None)

    def stage(self, name: str, total: int, unit: str | None = None) -> None:
        """Begin a stage with `total` units of work; 0 where that is not known: then only its time is shown.

        One that is begun again, as training is by ranks that are started again, keeps its bar.
        """
        if self._bar is not None and (self._name, self._bar.total) == (name, total):
            return
        self._close(finished=True)
        self._name = name
        self._bar = tqdm(
            desc=f"  {name}",
            total=total or None,
            unit=unit or self._unit,
            unit_scale=True,
            unit_divisor=1000,
            disable=None,
            dynamic_ncols=True,
            bar_format=None if total else "{desc} {elapsed}",
        )

    def at(self, done: int) -> None:
        """So many units of the stage are done; more than there are, and less than before, are not shown."""
        if self._bar is not None:
            self._bar.update(max(0, min(done, self._bar.total or done) - self._bar.n))

    def tick(self) -> None:
        """Time has passed."""
        if self._bar is not None:
            self._bar.refresh()

    def say(self, **figures: str) -> None:
        """Figures beside the bar."""
        if self._bar is not None:
            self._bar.set_postfix(figures, refresh=False)

    def _close(self, finished: bool) -> None:
        if self._bar is not None:
            if finished and self._bar.total:
                self._bar.update(self._bar.total - self._bar.n)
            self._bar.close()
            self._bar = None
