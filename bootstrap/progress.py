"""Progress bars on standard error, one per stage; without a terminal, a line of text every ten seconds.

Programs that need the progress of a run should read its file record.jsonl instead.
"""

import io
import sys
import threading
import time
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from types import MappingProxyType, TracebackType
from typing import Any, Self

from tqdm import tqdm
from tqdm.utils import disp_len

from bootstrap.terminal import columns, is_drawn_on, wrapped
from common.display import printable

_LEAST_BAR = 6
"""Minimum useful width of a bar, in characters."""
_LINE_SECONDS = 10.0
_UNKNOWN_TOTAL = "{desc} {elapsed}{postfix}"
_BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{left}, {rate_fmt}{postfix}]"
_LINE = "{desc}: {percentage:.0f}%, {n_fmt} of {total_fmt}, {rate_fmt}{left}{postfix}"
_STALLED_SECONDS = 10.0
"""Seconds without progress after which the remaining time is left out, because the estimate no longer decreases."""
_LINE_WITHOUT_TOTAL = "{desc}: {n_fmt}{unit}, {rate_fmt}, {elapsed}{postfix}"


class _Bar(tqdm):  # type: ignore[type-arg]  # its type parameter exists only for type checkers
    """Progress bar that can show a given speed, because tqdm's own estimate is unstable if progress comes in jumps."""

    pace: float | None = None
    moved = 0.0
    """Monotonic time of the last progress."""
    figures: Mapping[str, str] = MappingProxyType({})

    @property
    def format_dict(self) -> MutableMapping[str, Any]:
        """Parts of the line. The last figures are omitted if they leave no room for the bar."""
        shown = self._parts()
        shown["ncols"] = columns(sys.stderr) or shown["ncols"]
        figures = [f"{name}={figure}" for name, figure in self.figures.items()]
        while figures and shown["ncols"] and self._length(shown, figures) + _LEAST_BAR > shown["ncols"]:
            figures.pop()
        return {**shown, "postfix": ", ".join(figures)}

    def line(self) -> str:
        """Return the progress as a plain line with all figures."""
        line_format = _LINE if self.total else _LINE_WITHOUT_TOTAL if self.n else _UNKNOWN_TOTAL
        shown = self._parts()
        figures = ", ".join(f"{name}={figure}" for name, figure in self.figures.items())
        changed = {"ncols": None, "bar_format": line_format, "postfix": figures, "left": self._left(", {} left")}
        return str(self.format_meter(**{**shown, **changed}))

    def _parts(self) -> MutableMapping[str, Any]:
        """Return tqdm's parts of the line, with the given speed. The unit is plural, except as in `2.00s/row`."""
        shown = super().format_dict
        shown["rate"] = rate = self.pace or shown["rate"]
        if rate is None and shown["elapsed"]:
            rate = (shown["n"] - shown["initial"]) / shown["elapsed"]
        if shown["unit"] != "B":
            shown.update(n_fmt=_whole(shown["n"]), total_fmt=_whole(shown["total"] or 0))
            if not (rate and rate < 1):
                shown["unit"] = f" {shown['unit']}s"
        return {**shown, "left": self._left("<{}")}

    def _left(self, template: str) -> str:
        """Return the remaining time in a template; "" if the stage has made no progress for `_STALLED_SECONDS`."""
        rate = self.pace or super().format_dict["rate"]
        if not (rate and self.total):
            return template.format("?")
        if time.monotonic() - self.moved > _STALLED_SECONDS:
            return ""
        return template.format(self.format_interval((self.total - self.n) / rate))

    def _length(self, shown: MutableMapping[str, Any], figures: Sequence[str]) -> int:
        parts = {**shown, "postfix": ", ".join(figures), "ncols": None, "bar_format": _BAR.replace("{bar}", "")}
        return disp_len(self.format_meter(**parts))


def _whole(count: float) -> str:
    """Return a count without decimals, from a million on in thousands."""
    return f"{count:,.0f}" if count < 1_000_000 else f"{count // 1000:,.0f}k"


class _Nowhere(io.TextIOBase):
    """Output stream that discards the bar."""

    def write(self, text: str) -> int:
        return len(text)


def note(text: str) -> None:
    """Print a message that remains on the screen, above all bars."""
    tqdm.write(wrapped(f"  {printable(text)}", columns(sys.stderr)), file=sys.stderr)


class Bars:
    """Progress bars of consecutive stages. The bar of a finished stage remains on the screen.

    Without a terminal, a thread prints the lines, because some stages report no progress until they finish.
    """

    def __init__(self, unit: str = "B", *, line_seconds: float = _LINE_SECONDS) -> None:
        self._unit, self._line_seconds = unit, line_seconds
        self._bar: _Bar | None = None
        self._ended = threading.Event()
        self._lines: threading.Thread | None = None

    def __enter__(self) -> Self:
        if not is_drawn_on(sys.stderr):
            self._lines = threading.Thread(target=self._print_lines, daemon=True)
            self._lines.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lines is not None:
            self._ended.set()
            self._lines.join()
        self._close(finished=kind is None)

    def _print_lines(self) -> None:
        printed = ""
        with suppress(OSError):  # the program that reads standard error closed the pipe
            while not self._ended.wait(self._line_seconds):
                if (bar := self._bar) is not None and (line := bar.line()) != printed:
                    print(line, file=sys.stderr, flush=True)  # noqa: T201
                    printed = line

    def stage(self, name: str, total: int, unit: str | None = None) -> None:
        """Start a stage with `total` units of work. If the total is 0, it is unknown, and only the time is shown; the
        same stage is then not started again."""
        if not total and self._bar is not None and (self._bar.desc, self._bar.total) == (f"  {printable(name)}", None):
            self._bar.refresh()
            return
        self._close(finished=True)
        self._bar = _Bar(
            desc=f"  {printable(name)}",
            total=total or None,
            unit=unit or self._unit,
            unit_scale=True,
            unit_divisor=1000,
            file=sys.stderr if is_drawn_on(sys.stderr) else _Nowhere(),
            dynamic_ncols=True,
            bar_format=_BAR if total else _UNKNOWN_TOTAL,
        )
        self._bar.moved = time.monotonic()

    def begin_at(self, done: int) -> None:
        """Start or restart the stage with `done` units already finished. The speed does not count these units."""
        if self._bar is not None:
            self._bar.reset()
            self._bar.initial = self._bar.n = self._bar.last_print_n = done
            self._bar.pace = None

    def at(self, done: int) -> None:
        """Set the finished units to `done`. The bar never exceeds the total and never moves back."""
        if self._bar is not None:
            more = max(0, min(done, self._bar.total or done) - self._bar.n)
            self._bar.moved = time.monotonic() if more else self._bar.moved
            self._bar.update(more)

    def add(self, more: int) -> None:
        """Add `more` finished units."""
        if self._bar is not None:
            self.at(int(self._bar.n) + more)

    def pace(self, rate: float) -> None:
        """Set the speed in units per second, from which the bar computes the remaining time."""
        if self._bar is not None:
            self._bar.pace = rate

    def tick(self) -> None:
        """Redraw the bar to update its times."""
        if self._bar is not None:
            self._bar.refresh()

    def note(self, text: str) -> None:
        """Print a message that remains on the screen, above the bar; without a terminal, print it, too."""
        note(text)

    def say(self, **figures: str) -> None:
        """Show figures after the bar. If not all fit, only the first ones are shown."""
        if self._bar is not None:
            self._bar.figures = {name: printable(figure) for name, figure in figures.items()}

    def leave(self) -> None:
        """End the stage, and leave its bar as it is instead of filling it."""
        self._close(finished=False)

    def _close(self, finished: bool) -> None:
        if self._bar is not None:
            if finished and self._bar.total:
                self._bar.update(self._bar.total - self._bar.n)
            self._bar.close()
            self._bar = None
