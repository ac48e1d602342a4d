"""Reports the progress of a run: writes lines of the record (lines.py), prints messages for the user, shows a progress
bar.
"""

import json
import math
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
from tqdm import tqdm

from common.display import plural, printable
from common.errors import TrainingError
from common.files import read_tail
from trainer.distributed import failures
from trainer.distributed.exchange import StepReport
from trainer.distributed.ranks import Ranks
from trainer.output import checkpoint
from trainer.output.lines import Line, Note, Start, Step
from trainer.output.run_files import CHECKPOINTS, RECORD, SUMMARY, missing_output
from trainer.output.throughput import Throughput
from trainer.task import TRAINING

STEP_SECONDS = 0.5
"""Minimum number of seconds between two recorded steps, so that fast steps do not create a large record."""


def print_notice(text: str) -> None:
    """Print a sentence on stderr, above the progress bar. If stderr is a file on a full disk, the sentence is lost."""
    with suppress(OSError):
        tqdm.write(printable(text), file=sys.stderr)


class Record:
    """Appends lines to a file. Without a path it writes nothing; only the first rank has a path.

    If writing fails, the line is skipped, and the first failure is reported on stderr. The rank that writes the record
    must not fail alone, because the other ranks would wait for it.
    """

    def __init__(self, path: Path | None, *, fresh: bool) -> None:
        self._file, self._missing = None, False
        self._whole = self._complete = True
        if path is not None:
            before = read_tail(path, 1) if not fresh and path.exists() else ""
            self._file = path.open("wb" if fresh else "ab", buffering=0)
            self._whole = not before or before.endswith("\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, line: Line) -> None:
        """Append a line, and pass it to the operating system without buffering."""
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

    @property
    def missing(self) -> bool:
        """True once the path no longer leads to the file, because its folder was removed, moved or unmounted."""
        self._missing = self._missing or (self._file is not None and not _is_at(self._file, self._file.name))
        return self._missing


def _is_at(file: IO[bytes], path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), Path(path).stat())
    except OSError:
        return False


class Reporter:
    """Writes reports on the first rank. On the other ranks it does nothing."""

    def __init__(self, output: Path, ranks: Ranks, *, rows: int, seen: int, fresh: bool) -> None:
        """Open the record. All ranks must do this at the same time.

        `rows`: the number of rows in all epochs. `seen`: the number of these rows before this start. `fresh`: replace
        the record and the checkpoints of an earlier run. Raises TrainingError on all ranks if the output folder is not
        writable.
        """
        self.first, self.output = ranks.is_first, output
        self.names = ranks.gather(failures.rank_name(ranks.rank))
        """For each rank, the name that messages use."""
        with ranks.agreement():
            self._record = _open_record(output, fresh=fresh) if self.first else Record(None, fresh=fresh)
        self._recorded = -math.inf
        """Time (time.monotonic) of the latest recorded step."""
        self._apart = False
        self._pieces = np.zeros(ranks.world_size, dtype=np.int64)
        self._bar = tqdm(
            total=rows,
            initial=seen,
            unit=" rows",
            unit_scale=True,
            disable=None if self.first else True,  # None: the bar is shown if stderr is a terminal
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        self._record.close()

    def start(self, line: Start, ranks: Ranks, notes: Sequence[str]) -> None:
        """Report that the run starts or resumes. All ranks call this method at the same time.

        `notes`: messages for the user.
        """
        self.write(line)
        lost = failures.previous_failure()
        losses = list(filter(None, map(failures.parse, ranks.gather(lost.line() if lost else ""))))
        if losses:
            self.write(Note(text=f"{failures.root_cause(losses).short}; resuming from step {line.from_step}"))
        self.notes(notes)
        rows = line.rows[TRAINING]
        if line.global_batch > rows:
            self.note(
                f"the global batch of {line.global_batch} rows is larger than the {rows} training rows, so that every "
                "step takes all of them"
            )

    def write(self, line: Line) -> None:
        self._record.write(line)

    def note(self, text: str) -> None:
        """Report a problem that does not end the run. Only the first rank needs to call this method."""
        if self.first:
            print_notice(text)
            self._record.write(Note(text=text))

    def notes(self, texts: Sequence[str]) -> None:
        """Report several problems that do not end the run."""
        for text in texts:
            self.note(text)

    def weights_synchronised(self, most: float | None) -> None:
        """Report that the ranks' weights differed by up to `most` after an epoch, and were then made equal.

        Without `most`, the weights did not differ.
        """
        if most is not None and not self._apart:
            self.note(
                f"the ranks' weights differed by up to {most:.1e}, because different processors round differently; all "
                "ranks now have the weights of rank 0, as after each epoch"
            )
            self._apart = True

    @property
    def output_missing(self) -> bool:
        """True if the output folder was removed, moved or unmounted, so that this rank cannot save the run."""
        return self._record.missing

    def require_output(self) -> None:
        """Raise TrainingError if the output folder is missing."""
        if self.output_missing:
            raise missing_output(self.output)

    def advance(self, rows: int) -> None:
        self._bar.update(rows)

    def close_bar(self) -> None:
        """Close the progress bar, after the last step or before a stop."""
        self._bar.close()

    def step(self, report: StepReport, throughput: Throughput, *, epoch: int, last: bool) -> None:
        """Record the report of a step. `epoch` is counted from 1."""
        for rank in np.flatnonzero(report.pieces != self._pieces):
            pieces = f"pieces of {plural(int(report.pieces[rank]), 'row')}"
            self.note(f"{self.names[rank]}: its share does not fit into its memory; continuing in {pieces}")
        self._pieces = report.pieces
        now = time.monotonic()
        if last or now - self._recorded >= STEP_SECONDS:
            self._recorded = now
            self._record.write(
                Step(
                    epoch=epoch,
                    step=report.step + 1,
                    loss=report.loss,
                    rows_per_second=throughput.rows_per_second,
                    balanced=throughput.balanced,
                    split=tuple(report.rows.tolist()),
                    compute_seconds=tuple(report.seconds.tolist()),
                )
            )
            balanced = f", {throughput.balanced:.0%} balanced" if len(report.rows) > 1 else ""
            self._bar.set_postfix_str(f"loss {report.loss:.3f}{balanced}")


def _open_record(output: Path, *, fresh: bool) -> Record:
    """Open the record of a run that starts or continues. Raises TrainingError if the output folder is not writable.

    `fresh`: replace the record and the checkpoints of an earlier run.
    """
    try:
        (output / SUMMARY).unlink(missing_ok=True)
        if fresh:
            checkpoint.clear(output / CHECKPOINTS)
        return Record(output / RECORD, fresh=fresh and failures.previous_failure() is None)
    except OSError as error:
        raise TrainingError(
            f"cannot write {error.filename}: {error.strerror}; remove it, or choose another --output"
        ) from error
