"""record.jsonl: what happened in a run, a JSON object a line (`lines.py`), appended as it happens."""

import json
import math
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tqdm import tqdm

from common.display import printable_lines
from trainer.output.lines import Line

_STEP_SECONDS = 0.5
_QUIET_SECONDS = 5.0


def print_notice(text: str) -> None:
    """Print a sentence on stderr, above a progress bar. If stderr is a file on a full disk, the sentence is lost."""
    with suppress(OSError):
        tqdm.write(printable_lines(text), file=sys.stderr)


class Record:
    """Appends lines to a file; without a path (on all ranks but the first) it writes nothing.

    A line that cannot be written is left out, and the first such line is reported on stderr: the rank that writes the
    record must not fail alone while the others wait for it.
    """

    def __init__(self, path: Path | None, *, fresh: bool) -> None:
        self._file = None
        self._whole = self._complete = True
        if path is not None:
            before = path.read_bytes() if not fresh and path.exists() else b""
            self._file = path.open("wb" if fresh else "ab", buffering=0)
            self._whole = not before or before.endswith(b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, line: Line) -> None:
        """Append a line, and hand it to the operating system."""
        if self._file is not None:
            encoded = f"{'' if self._whole else chr(10)}{json.dumps(line.plain(), allow_nan=False)}\n".encode()
            try:
                self._whole = self._file.write(encoded) == len(encoded)
            except OSError as error:
                if self._complete:
                    print_notice(
                        f"cannot write {self._file.name}: {error.strerror}; continuing without some of its lines"
                    )
                self._complete = False


class StepSampling:
    """Chooses the steps that are recorded, since a run was started."""

    def __init__(self, every: int) -> None:
        """`every`: steps between two lines. Lines are also at least half a second apart, and at most five seconds if
        steps are slow; 1: every step, however quick."""
        self._every = every
        self._latest: float | None = None

    def takes(self, step: int, *, last: bool, now: float) -> bool:
        """Whether to record this step (of the run, from 0); `now` in seconds."""
        since = math.inf if self._latest is None else now - self._latest
        due = step % self._every == 0 and (self._every == 1 or since >= _STEP_SECONDS)
        if not (due or last or since >= _QUIET_SECONDS):
            return False
        self._latest = now
        return True
