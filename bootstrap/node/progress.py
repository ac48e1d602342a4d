"""Progress of a run on a node: of the program that copies the data, and of the ranks, from the record that rank 0
writes to the run's folder. Detects ranks that hang."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bootstrap.node.assignment import Assignment
from common.errors import DataError
from common.files import DOCUMENT_BYTES, open_regular, read_regular
from corpus.text_request import TextProgress
from trainer.embeddings.options import ENDLESS
from trainer.output.lines import Line, Start, Step, parse_line
from trainer.output.run_files import RECORD

_REPORT_SECONDS = 30.0
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


class ReportedProgress:
    """Fields of a node's status that state the progress of its ranks."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment, self._clock = assignment, assignment.node.clock
        self._recorded = RecordedProgress(assignment.folder, self._clock)
        self._reported = -_REPORT_SECONDS

    def due_fields(self) -> Mapping[str, Any]:
        """Return the fields at most every 30 seconds, because each changed status costs one write to the store. Return
        no fields in the meantime and for a node without ranks."""
        if not self._assignment.me.gpus or self._clock() - self._reported < _REPORT_SECONDS:
            return {}
        self._reported = self._clock()
        machine, recorded = self._assignment.node.machine, self._recorded
        if self._assignment.is_first:  # the shared folder can hang on other nodes
            recorded.update()
        return {
            "step": recorded.step,
            "steps": recorded.steps,
            "ends": recorded.ends,
            "starts": recorded.attempt,
            "gpu_use": machine.gpu_use(),
            "trouble": "; ".join(filter(None, (machine.full_disk(), recorded.hung))),
        }


def text_fields(path: Path) -> Mapping[str, Any]:
    """Return the fields of a node's status that state the progress of reading texts. Return no fields if the file does
    not exist yet."""
    with suppress(OSError, DataError):
        return vars(TextProgress.from_json(read_regular(path, DOCUMENT_BYTES)))
    return {}
