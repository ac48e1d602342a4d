"""A training run for TensorBoard: the lines of its record as event files, in a folder beside it.

A resumed run repeats some steps. So each `start` line of the record has TensorBoard discard the points after its step,
and a record that begins with step 0 removes the event files of earlier runs.

Messages and checksums are tensorboardX's. Do not use its SummaryWriter: it writes in a thread that does not report a
full disk, and its caller then waits for ever.
"""

import json
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bootstrap.progress import note
from experiments.records.runs import numbers
from trainer.output.lines import End, Epoch, Line, Start, Step, Test, Waiting


@contextmanager
def _without(module: str) -> Iterator[None]:
    """Let an import fail as if the module were not installed, unless it was imported before."""
    known = module in sys.modules
    sys.modules.setdefault(module, None)  # type: ignore[arg-type]
    try:
        yield
    finally:
        if not known:
            del sys.modules[module]


# tensorboardX imports torch where it can. That takes seconds, and memory that the ranks need.
with _without("torch"):
    from tensorboardX.proto.event_pb2 import Event, SessionLog
    from tensorboardX.proto.summary_pb2 import Summary
    from tensorboardX.record_writer import masked_crc32c
    from tensorboardX.summary import hparams, text

FOLDER = "tensorboard"

_PREFIX = "events.out.tfevents."
_COMPARED = (
    "validation/balanced_accuracy",
    "test/balanced_accuracy",
    "test/macro_f1",
    "test/accuracy",
    "validation/similarity",
    "test/similarity",
    "training/loss",
)
"""The measures that the table of runs shows beside their settings."""


class TensorBoardWriter:
    """Converts a record's lines to event files; `flush` writes them.

    Where the files cannot be written, it reports that once on stderr, and the run goes on without them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: FileIO | None = None
        self._pending = b""
        self._gave_up = False
        self._steps_of_epoch, self._ideal = 1, 1.0
        self._epochs_written = 0
        self._test_written = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()

    def take(self, line: Line) -> None:
        """Take one line of the record; the first one is a Start."""
        if self._gave_up:
            return
        match line:
            case Start():
                self._start(line)
            case Step():
                self._step(line)
            case Waiting() if line.seconds:
                self._add_points(line, line.step, {"speed/seconds_without_text": line.seconds})
            case Epoch():
                self._epoch(line)
            case Test():
                self._test(line)
            case End() if not line.summary.get("stopped"):
                *_, ended = hparams({}, {})
                self._add(line, 0, summary=ended)

    def flush(self) -> None:
        """Write the events of the lines that were taken; an interrupt leaves no half event between others."""
        events, self._pending = self._pending, b""
        if not events or self._gave_up:
            return
        try:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                name = f"{_PREFIX}{time.time():.6f}.{socket.gethostname()}"
                self._file = (self._folder / name).open("xb", buffering=0)
            while events:
                events = events[self._file.write(events) :]
        except OSError as error:
            self._give_up(error)

    def _start(self, line: Start) -> None:
        if self._file is None and line.from_step == 0:
            self._remove_files()
        self._steps_of_epoch = line.steps // line.epochs
        self._ideal = sum(line.own_rates)
        self._epochs_written = min(self._epochs_written, line.from_step // self._steps_of_epoch)
        self._test_written &= line.from_step == line.steps
        if self._file is None and not self._pending:
            self._add(line, 0, file_version="brain.Event:2")
        self._add(line, line.from_step + 1, session_log=SessionLog(status=SessionLog.START))
        self._add(line, line.from_step, summary=text("run", _table(line)))
        compared, settings, _ = hparams(_settings(line), dict.fromkeys(_COMPARED))
        self._add(line, 0, summary=compared)
        self._add(line, 0, summary=settings)

    def _step(self, line: Step) -> None:
        points: dict[str, float | None] = {"training/loss": line.loss}
        if line.rows_per_second:
            points["speed/rows_per_second"] = line.rows_per_second
            points["speed/share_of_ideal"] = line.rows_per_second / self._ideal
            points["speed/balanced"] = line.balanced
        for name in ("split", "compute_seconds"):
            points |= {f"{name}/rank_{rank}": value for rank, value in enumerate(getattr(line, name))}
        self._add_points(line, line.step, points)

    def _epoch(self, line: Epoch) -> None:
        if line.epoch <= self._epochs_written:
            return  # a run that is resumed after the last step of an epoch measures it again
        self._epochs_written = line.epoch
        points = {"training/loss_of_epoch": line.loss}
        points |= {f"validation/{measure}": value for measure, value in numbers(line.validation).items()}
        self._add_points(line, line.epoch * self._steps_of_epoch, points)

    def _test(self, line: Test) -> None:
        if self._test_written:
            return
        self._test_written = True
        points = {"test/loss": line.loss, **{f"test/{name}": value for name, value in numbers(line.measures).items()}}
        self._add_points(line, line.epoch * self._steps_of_epoch, points)

    def _add_points(self, line: Line, step: int, points: Mapping[str, float | None]) -> None:
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in points.items() if value is not None]
        self._add(line, step, summary=Summary(value=values))

    def _add(self, line: Line, step: int, **what: Any) -> None:
        event = Event(wall_time=line.time, step=step, **what).SerializeToString()
        size = struct.pack("<Q", len(event))
        self._pending += size + _checksum(size) + event + _checksum(event)

    def _remove_files(self) -> None:
        try:
            for path in self._folder.glob(f"{_PREFIX}*"):
                path.unlink()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._gave_up = True
        note(f"cannot write to {self._folder}: {error.strerror}; the run continues without curves for TensorBoard")


def _checksum(part: bytes) -> bytes:
    return struct.pack("<I", masked_crc32c(part))


def _settings(start: Start) -> dict[str, Any]:
    """The run's settings as the table of runs takes them: numbers and words."""
    settings = {
        **start.config,
        "epochs": start.epochs,
        "global_batch": start.global_batch,
        "world_size": start.world_size,
    }
    return {name: json.dumps(value) if isinstance(value, dict) else value for name, value in settings.items()}


def _table(start: Start) -> str:
    """The settings and the data of a run, in Markdown."""
    rows = {**_settings(start), **{name: getattr(start, name) for name in ("devices", "rows", "digest", "own_rates")}}
    return "\n".join(["| setting | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])
