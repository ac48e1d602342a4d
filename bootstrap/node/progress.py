"""Progress of a run's ranks, and detection of ranks that hang, from the record that rank 0 writes to the run's
folder."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from common.files import DOCUMENT_BYTES, open_regular
from trainer.embeddings.options import ENDLESS
from trainer.output.lines import Line, Start, Step, parse_line
from trainer.output.run_files import RECORD

HUNG_SECONDS, _HUNG_STEPS = 300.0, 50
"""Ranks count as hung after HUNG_SECONDS without a complete step, or after _HUNG_STEPS times the usual duration of a
step if that is longer."""


class RecordedProgress:
    """Latest step, total steps, expected end and number of starts of a run, read from its record. Unknown values are
    None.

    Each call of `update` reads only the lines that were added since the previous call.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._record, self._offset, self._clock = folder / RECORD, 0, clock
        self._last_progress = clock()
        """Time on `clock` of the last step or start. The times in the record are not used, because they can jump."""
        self._step_seconds: float | None = None
        """Usual seconds per step, kept when ranks restart; None before the first step."""
        self._first: Step | None = None
        """First step since the ranks started."""
        self._latest: Step | None = None
        self.steps: int | None = None
        """Total steps of the run."""
        self.attempt: int | None = None

    @property
    def step(self) -> int | None:
        return None if self._latest is None else self._latest.step

    @property
    def ends(self) -> float | None:
        """Expected time of the last step in seconds since 1970; None if unknown.

        The time is extrapolated from the speed since the ranks started, which includes evaluations and checkpoints.
        """
        if self.steps is None or self._first is None or self._latest is None:
            return None
        done, took = self._latest.step - self._first.step, self._latest.time - self._first.time
        if done <= 0 or took <= 0:
            return None
        return self._latest.time + max(0, self.steps - self._latest.step) * took / done

    @property
    def hung(self) -> str:
        """Message for the user if the ranks hang, else an empty string."""
        if self._step_seconds is None:
            return ""
        idle = self._clock() - self._last_progress
        if idle < max(HUNG_SECONDS, _HUNG_STEPS * self._step_seconds):
            return ""
        return f"no step for {idle / 60:.0f} minutes; a step usually takes {self._step_seconds:.2f} s"

    def update(self) -> None:
        """Read new lines of the record. If the record is unreadable now, the next call reads it."""
        with suppress(OSError), open_regular(self._record) as file:
            if os.fstat(file.fileno()).st_size < self._offset:  # the run started from the beginning
                self._offset, self.steps, self.attempt, self._first, self._latest = 0, None, None, None, None
                self._step_seconds = None
            file.seek(self._offset)
            for line in iter(lambda: file.readline(DOCUMENT_BYTES), b""):
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self._take(parse_line(line))

    def _take(self, line: Line | None) -> None:
        match line:
            case Start():
                self.attempt, self._first = (self.attempt or 0) + 1, None
                self.steps = line.steps if line.epochs < ENDLESS else None
                self._last_progress = self._clock()
            case Step():
                self._first, self._latest = self._first or line, line
                done = line.step - self._first.step
                self._step_seconds = (line.time - self._first.time) / done if done > 0 else self._step_seconds or 0.0
                self._last_progress = self._clock()
