"""What a person sees of long work: one bar a stage, on standard error, and nothing at all where that is no terminal.

A program that wants to follow reads the records instead.
"""

import sys
from collections.abc import Mapping, MutableMapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, Self

from tqdm import tqdm
from tqdm.utils import disp_len

from bootstrap.terminal import columns, wrapped

_LEAST_BAR = 6
"""Letters of a bar that still shows how far it is."""


class _Bar(tqdm):  # type: ignore[type-arg]  # it has a parameter for type checkers alone
    """A bar whose speed may be told from outside: what it measures itself jumps where progress is heard of in jumps."""

    pace: float | None = None
    figures: Mapping[str, str] = MappingProxyType({})

    @property
    def format_dict(self) -> MutableMapping[str, Any]:
        """What is shown, with as many of the figures, the first ones, as leave the bar some letters of the line."""
        shown = super().format_dict
        if self.pace:
            shown["rate"] = self.pace
        shown["ncols"] = columns(sys.stderr) or shown["ncols"]
        figures = [f"{name}={figure}" for name, figure in self.figures.items()]
        while figures and shown["ncols"] and self._length(shown, figures) + _LEAST_BAR > shown["ncols"]:
            figures.pop()
        return {**shown, "postfix": ", ".join(figures)}

    def _length(self, shown: MutableMapping[str, Any], figures: Sequence[str]) -> int:
        parts = {**shown, "postfix": ", ".join(figures), "ncols": None, "bar_format": "{l_bar}{r_bar}"}
        return disp_len(self.format_meter(**parts))


def note(text: str) -> None:
    """A sentence that stays on the screen, above all bars."""
    tqdm.write(wrapped(f"  {text}", columns(sys.stderr)), file=sys.stderr)


class Bars:
    """The stages of one piece of work, one after the other; the bar of a finished one stays on the screen."""

    def __init__(self, unit: str = "B") -> None:
        self._unit = unit
        self._bar: _Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(finished=kind is None)

    def stage(self, name: str, total: int, unit: str | None = None) -> None:
        """Begin a stage with `total` units of work; 0 where that is not known: then only its time is shown."""
        self._close(finished=True)
        self._bar = _Bar(
            desc=f"  {name}",
            total=total or None,
            unit=unit or self._unit,
            unit_scale=True,
            unit_divisor=1000,
            disable=None,
            dynamic_ncols=True,
            bar_format=None if total else "{desc} {elapsed}",
        )

    def begin_at(self, done: int) -> None:
        """The stage begins, or begins again, with so many units done before, which count for no speed."""
        if self._bar is not None:
            self._bar.reset()
            self._bar.initial = self._bar.n = self._bar.last_print_n = done
            self._bar.pace = None

    def at(self, done: int) -> None:
        """So many units of the stage are done; more than there are, and less than before, are not shown."""
        if self._bar is not None:
            self._bar.update(max(0, min(done, self._bar.total or done) - self._bar.n))

    def pace(self, rate: float) -> None:
        """So many units a second are done; the time that is left goes by this."""
        if self._bar is not None:
            self._bar.pace = rate

    def tick(self) -> None:
        """Time has passed."""
        if self._bar is not None:
            self._bar.refresh()

    def note(self, text: str) -> None:
        """A sentence that stays on the screen, above the bar; also where that is no terminal."""
        note(text)

    def say(self, **figures: str) -> None:
        """Figures beside the bar, as many of them, from the first, as the line has room for."""
        if self._bar is not None:
            self._bar.figures = figures

    def leave(self) -> None:
        """The stage ends as far as it came."""
        self._close(finished=False)

    def _close(self, finished: bool) -> None:
        if self._bar is not None:
            if finished and self._bar.total:
                self._bar.update(self._bar.total - self._bar.n)
            self._bar.close()
            self._bar = None
