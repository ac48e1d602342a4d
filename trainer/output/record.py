"""record.jsonl: what happened in a run, a JSON object a line, appended as it happens.

Every line has `kind` and `time` (seconds since 1970). The kinds, in the order in which they come:

- `start`: `config`, `world_size`, `devices` (a name a rank), `rows` (`training`, `validation`, `test`), `digest` (the
  dataset's), `global_batch`, `epochs`, `steps` (of the whole run), `from_step` (0, or where it was resumed),
  `own_rates` (rows/s, a rank), `precision`.
- `step`: every `record_every` steps, but at most one in half a second, so that quick steps make no large file, and
  one at least in five seconds; the first and the last step after each start always; with `record_every` 1 all of them.
  `epoch` and `step` (of the run; both from 1), `loss` (the mean over the global batch; 0 with --sleep),
  `rows_per_second` and `balanced` (since the `start`, evaluation left out), `split` (rows, a rank, as they were
  computed), `compute_seconds` (a rank's own, without waiting for others).
- `checkpoint`: `step`, `file`, `seconds` that writing took.
- `waiting`, where the text is to come from which a run learns: `step`, after which its rows are not there yet, and
  `seconds`: a line with 0 where the wait begins, and another one at its end with what it took.
- `note`: `text`, a sentence on a problem that did not end the run, such as a checkpoint that could not be written, a
  share that did not fit into a rank's memory, a rank that was lost before this `start`, or weights that differed
  between ranks and were made equal (once after a start, with the difference in the first such epoch).
- `epoch`: `epoch`, `loss`, `validation` (with `loss` and the measures of
  classification/metrics.py).
- `test`, at the end: `epoch` (the last), `loss` and the measures on the test rows, and `confusion`: `classes`, their
  names by label, and `counts`, where `counts[i][j]` rows have the label i and the prediction j. `temperature` and
  `threshold` are fitted on the validation rows (classification/calibration.py); `log_loss` is that of the calibrated
  probabilities of the labels, `uncalibrated_log_loss` that at a temperature of 1.
- `end`: the content of summary.json.

summary.json is one object. Of the whole run: `accuracy`, `balanced_accuracy`, `macro_f1`, `majority`, for two classes
also `f1_positive` and `f1_negative`, and `log_loss`, `uncalibrated_log_loss`, `temperature`, `threshold` and
`confusion` (on the test rows, at the end; null where a run was stopped; more than two classes have a threshold of 0.5),
`validation` (after the latest epoch), `stopped`, `steps`, `rows_seen`, `seconds` (of training, checkpoints included),
`samples_per_second`; and its settings: `rows` (to train on), `global_batch`, `epochs`, `world_size`, `precision`,
`positive_weight` (1 for more than two classes), `digest`, `slept` (whether the ranks slept instead of computing,
so that there is no model, and the measures are of an untrained one). Since its latest start:

- `own_rates`, rows/s: the higher of two measurements of each rank; `share_of_ideal`, rows a second over their sum;
  `balanced`, the same over the sum of the rates that the ranks had in the run; `lost`, where the rest of it went
  (`imbalance`, `communication`, `data`, `checkpoints`, `rest`; with `balanced` they add up to 1). These three are null
  without a step.
- `split` (of a full step, as it was last), and `rows_of_ranks`.
- `bytes_a_step`: what a rank sends to the others for a step of its own, with what it pulls of them (`--mode async`);
  of a sum over the ranks what a ring sends; null without a step.
- `profile`: how many seconds each rank spent in each phase of its steps (clock.py); what a rank waits for others is in
  `all_reduce`.
- `times`, the first rank's seconds, by what they were spent on (`loading`, `rates`, `waiting` for text that
  is to come, `training` without its `checkpoints`, `evaluation`, `other`), which add up to `wall`, the time from where
  the ranks had met.

`shoal train --deployment` adds `run` (its folder), `nodes`, `cost` (dollars), and, where that was predicted, `launch`
(what each stage of the command took, and what it was to take).

A resumed run appends, beginning with another `start`; steps after its `from_step` are then there twice. A reader must
not take every line for whole: a killed process, or a full disk, may leave half a line, which the next write ends.
"""

import json
import math
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

_STEP_SECONDS = 0.5
_QUIET_SECONDS = 5.0


def print_notice(text: str) -> None:
    """Print a sentence on stderr, above a progress bar. If stderr is a file on a full disk, the sentence is lost."""
    with suppress(OSError):
        tqdm.write(text, file=sys.stderr)


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

    def write(self, kind: str, **content: Any) -> None:
        """Append one line, and hand it to the operating system."""
        if self._file is not None:
            line = json.dumps({"kind": kind, "time": round(time.time(), 3), **content}, allow_nan=False)
            encoded = f"{'' if self._whole else chr(10)}{line}\n".encode()
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
