"""record.jsonl: what happened in a run, a JSON object a line, appended as it happens.

Every line has `kind` and `time` (seconds since 1970). The kinds, in the order in which they come:

- `start`: `config`, `world_size`, `devices` (a name a rank), `rows` (`training`, `validation`, `test`), `digest` (the
  dataset's), `global_batch`, `steps` (of the whole run), `from_step` (0, or where it goes on), `own_rates` (rows/s, a
  rank).
- `step`: every `record_every` steps. `epoch` and `step` (of the run; both from 1), `loss` (the mean over the global
  batch), `rows_per_second` (in this sitting, evaluation left out), `split` (rows, a rank), `compute_seconds` (a rank's
  own, without waiting for others).
- `checkpoint`: `step`, `file`, `seconds` that writing took.
- `epoch`: `epoch`, `loss`, `validation` and `test` (each with `loss` and the measures of metrics.py), `best` (so far).
- `end`: what summary.json says.

A resumed run appends, beginning with another `start`; steps after its `from_step` are then told twice. The easy
mistake is to take every line for whole: a process that is killed may leave half a line. The next sitting ends it.
"""

import json
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Record:
    """Appends lines to a file; without a path (on all ranks but the first) it writes nothing."""

    def __init__(self, path: Path | None, *, fresh: bool) -> None:
        self._file = None
        if path is not None:
            before = path.read_bytes() if not fresh and path.exists() else b""
            self._file = path.open("w" if fresh else "a", encoding="utf-8")
            if before and not before.endswith(b"\n"):
                self._file.write("\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, kind: str, **content: Any) -> None:
        """Append one line and hand it to the operating system."""
        if self._file is not None:
            line = {"kind": kind, "time": round(time.time(), 3), **content}
            self._file.write(json.dumps(line, allow_nan=False) + "\n")
            self._file.flush()
