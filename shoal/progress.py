"""Progress bars on standard error, one per stage; without a terminal, a line of text every ten seconds.

Programs that need the progress of a run should read its file record.jsonl instead.
"""

import io
import os
import sys
import threading
from collections.abc import Mapping, MutableMapping
from contextlib import ExitStack, suppress
from types import MappingProxyType, TracebackType
from typing import Any, Self

from tqdm import tqdm

from common.display import printable, size
from common.progress import ProgressReporter, reporting

_LINE_SECONDS = 10.0
_BAR = "{desc} |{bar:10}| {text}"
_UNKNOWN_TOTAL = "{desc}: {text}"


class _Bar(tqdm):  # type: ignore[type-arg]  # its type parameter exists only for type checkers
    """Progress bar that can show a given speed, because the average speed lags if progress comes in jumps."""

    pace: float | None = None
    figures: Mapping[str, str] = MappingProxyType({})

    @property
    def format_dict(self) -> MutableMapping[str, Any]:
        """Parts of the line. tqdm cuts the line at the end of the terminal."""
        return {**super().format_dict, "text": self.text()}

    def text(self) -> str:
        """Return the progress, such as `40%, 40 of 100, 5 rows/s, 00:12 left, loss=0.345`."""
        elapsed = super().format_dict["elapsed"]
        rate = self.pace or (elapsed and (self.n - self.initial) / elapsed)
        parts = []
        if self.total:
            parts += [f"{self.n / self.total:.0%}", f"{self._count(self.n)} of {self._count(self.total)}"]
        elif self.n:
            parts.append(self._count(self.n))
        if rate:
            parts.append(self._speed(rate))
        if not self.total:
            parts.append(self.format_interval(elapsed))
        elif rate:
            parts.append(f"{self.format_interval((self.total - self.n) / rate)} left")
        return ", ".join([*parts, *(f"{name}={figure}" for name, figure in self.figures.items())])

    def _count(self, number: float) -> str:
        return size(number) if self.unit == "B" else f"{number:,.0f}"

    def _speed(self, rate: float) -> str:
        if self.unit == "B":
            return f"{size(rate)}/s"
        return f"{rate:,.0f} {self.unit}s/s" if rate >= 1 else f"{1 / rate:.1f} s/{self.unit}"


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def _shows_bars() -> bool:
    """Return whether standard error is a terminal that can overwrite its lines."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class Bars(ProgressReporter):
    """Progress bars of consecutive stages, for a block. The bar of a finished stage remains on the screen.

    Without a terminal, a thread prints the lines, because some stages report no progress until they finish.
    """

    def __init__(self, unit: str = "B", *, line_seconds: float = _LINE_SECONDS) -> None:
        self._unit, self._line_seconds = unit, line_seconds
        self._bar: _Bar | None = None
        self._ended = threading.Event()
        self._lines: threading.Thread | None = None
        self._context = ExitStack()

    def __enter__(self) -> Self:
        if not _shows_bars():
            self._lines = threading.Thread(target=self._print_lines, daemon=True)
            self._lines.start()
        self._context.enter_context(reporting(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.close()
        if self._lines is not None:
            self._ended.set()
            self._lines.join()
        self._close(finished=kind is None)

    def _print_lines(self) -> None:
        printed = ""
        with suppress(OSError):  # the program that reads standard error closed the pipe
            while not self._ended.wait(self._line_seconds):
                if (bar := self._bar) is not None and (line := f"{bar.desc}: {bar.text()}") != printed:
                    print(line, file=sys.stderr, flush=True)  # noqa: T201
                    printed = line

    def stage(self, name: str, total: int = 0, unit: str | None = None) -> None:
        if not total and self._bar is not None and (self._bar.desc, self._bar.total) == (f"  {printable(name)}", None):
            self._bar.refresh()
            return
        self._close(finished=True)
        self._bar = _Bar(
            desc=f"  {printable(name)}",
            total=total or None,
            unit=unit or self._unit,
            file=sys.stderr if _shows_bars() else _Nowhere(),
            dynamic_ncols=True,
            bar_format=_BAR if total else _UNKNOWN_TOTAL,
        )

    def begin_at(self, done: int) -> None:
        if self._bar is not None:
            self._bar.reset()
            self._bar.initial = self._bar.n = self._bar.last_print_n = done
            self._bar.pace = None

    def at(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(max(0, min(done, self._bar.total or done) - self._bar.n))

    def add(self, more: int) -> None:
        if self._bar is not None:
            self.at(int(self._bar.n) + more)

    def pace(self, rate: float) -> None:
        if self._bar is not None:
            self._bar.pace = rate

    def tick(self) -> None:
        if self._bar is not None:
            self._bar.refresh()

    def note(self, text: str) -> None:
        tqdm.write(f"  {printable(text)}", file=sys.stderr)

    def say(self, **figures: str) -> None:
        if self._bar is not None:
            self._bar.figures = {name: printable(figure) for name, figure in figures.items()}

    def leave(self) -> None:
        self._close(finished=False)

    def _close(self, finished: bool) -> None:
        if self._bar is not None:
            if finished and self._bar.total:
                self._bar.update(self._bar.total - self._bar.n)
            self._bar.close()
            self._bar = None
