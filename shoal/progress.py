"""Progress bars on standard error, one per stage; without a terminal, a line of text every ten seconds.

Programs that need the progress of a run should read its file record.jsonl instead.
"""

import os
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from common.display import printable, size
from common.progress import ProgressReporter, reporting

if TYPE_CHECKING:
    from rich.progress import Progress

_LINE_SECONDS = 10.0


@dataclass
class _Stage:
    """Progress of a stage. Its text is such as `40%, 40 of 100, 5 rows/s, 00:12 left, loss=0.345`."""

    name: str
    total: int
    unit: str
    started: float = field(default_factory=time.monotonic)
    initial: int = 0
    done: int = 0
    pace: float = 0.0
    """Given speed, because the average speed lags if progress comes in jumps."""
    figures: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        done, total, elapsed = self.done, self.total, time.monotonic() - self.started
        count, units = (size, "") if self.unit == "B" else ("{:,.0f}".format, f" {self.unit}s")
        rate = self.pace or (elapsed and (done - self.initial) / elapsed)
        speed = f"{1 / rate:.1f} s/{self.unit}" if units and 0 < rate < 1 else f"{count(rate)}{units}/s"
        parts = [
            f"{done / total:.0%}, {count(done)} of {count(total)}" if total else count(done) if done else "",
            speed if rate else "",
            _clock(elapsed) if not total else f"{_clock((total - done) / rate)} left" if rate else "",
        ]
        return ", ".join(filter(None, [*parts, *(f"{name}={figure}" for name, figure in self.figures.items())]))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes:02}:{rest:02}"


class Bars(ProgressReporter):
    """Progress bars of consecutive stages, for a block. The bar of a finished stage remains on the screen.

    Without a terminal, a thread prints the lines, because some stages report no progress until they finish.
    """

    def __init__(self, unit: str = "B", *, line_seconds: float = _LINE_SECONDS) -> None:
        self._unit, self._line_seconds = unit, line_seconds
        self._stage = _Stage("", 0, unit)
        self._bar: Progress | None = None
        self._overwrites = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._ended = threading.Event()
        self._context = ExitStack()

    def __enter__(self) -> Self:
        if not self._overwrites:
            lines = threading.Thread(target=self._print_lines, daemon=True)
            lines.start()
            self._context.callback(lines.join)
            self._context.callback(self._ended.set)
        self._context.enter_context(reporting(self))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._context.close()
        self._close(finished=kind is None)

    def _print_lines(self) -> None:
        printed = ""
        with suppress(OSError):  # the program that reads standard error closed the pipe
            while not self._ended.wait(self._line_seconds):
                if (stage := self._stage).name and (line := f"  {stage.name}: {stage}") != printed:
                    print(line, file=sys.stderr, flush=True)  # noqa: T201
                    printed = line

    def stage(self, name: str, total: int = 0, unit: str | None = None) -> None:
        if not total and (self._stage.name, self._stage.total) == (printable(name), 0):
            return
        self._close(finished=True)
        self._stage = _Stage(printable(name), total, unit or self._unit)
        if self._overwrites:
            self._bar = _start_bar(self._stage)

    def begin_at(self, done: int) -> None:
        self._stage.started, self._stage.pace = time.monotonic(), 0.0
        self._stage.initial = self._stage.done = done
        self.at(done)

    def at(self, done: int) -> None:
        self._stage.done = max(self._stage.done, min(done, self._stage.total or done))
        if (bar := self._bar) is not None:
            bar.update(bar.task_ids[0], completed=self._stage.done)

    def add(self, more: int) -> None:
        self.at(self._stage.done + more)

    def pace(self, rate: float) -> None:
        self._stage.pace = rate

    def tick(self) -> None:
        if (bar := self._bar) is not None:
            bar.refresh()

    def note(self, text: str) -> None:
        if self._bar is None:
            super().note(text)
        else:
            self._bar.console.print(f"  {printable(text)}", soft_wrap=True)

    def say(self, **figures: str) -> None:
        self._stage.figures = {name: printable(figure) for name, figure in figures.items()}

    def leave(self) -> None:
        self._close(finished=False)

    def _close(self, finished: bool) -> None:
        if finished:
            self.at(self._stage.total)
        if self._bar is not None:
            self._bar.stop()
        self._bar, self._stage = None, _Stage("", 0, self._unit)


def _start_bar(stage: _Stage) -> "Progress":
    """Show a bar, which a thread draws ten times a second. It is one line, cut at the end of the terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    bar = Progress(
        TextColumn("  {task.description}", markup=False),
        *([BarColumn(10)] if stage.total else []),
        TextColumn("{task.fields[stage]}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
        console=Console(stderr=True, force_terminal=True, markup=False, emoji=False, highlight=False),
        redirect_stdout=False,
        redirect_stderr=False,
        expand=True,
    )
    bar.add_task(stage.name, total=stage.total or None, stage=stage)
    bar.start()
    return bar
