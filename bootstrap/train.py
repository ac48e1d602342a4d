"""Training on this machine: ranks started by trainer/launch.py, watched by their record, stopped with a checkpoint.

The easy mistake is to kill the ranks on Ctrl-C: they are asked to stop, finish their step, write a checkpoint,
and end well.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bootstrap.errors import ShoalError
from bootstrap.interrupt import hear, name_of
from bootstrap.progress import Bars
from bootstrap.tensorboard import FOLDER, Board
from bootstrap.watch import RunView
from corpus.dataset import open_dataset
from trainer import faults
from trainer.command_line import as_arguments
from trainer.config import RANK_ENVIRONMENT, TrainConfig
from trainer.errors import TrainingError
from trainer.files import RECORD, SUMMARY, finished_summary, require_free

STOP_SECONDS = 60
"""How long the launcher gives the ranks to end with a checkpoint, once they are asked to stop."""
RESTARTS = 3
"""How often ranks are started again when one is lost: each time costs the steps since the last checkpoint."""
LOG_NAME = "train.log"

_FAILURE_PREFIX = "trainer: "
_PAUSE_SECONDS = 0.3


def train_here(config: TrainConfig, *, ranks: int, bars: Bars) -> dict[str, Any]:
    """Train with `ranks` processes on this machine; returns what summary.json says.

    Ctrl-C and SIGTERM stop the run with a checkpoint; that is a good end, with `stopped` true, and `stopped_by` the
    signal's name. A finished run that is to be gone on with is left as it is; `finished_before` is true then. Raises
    DataError for a dataset that cannot be used, TrainingError with the trainer's own sentence, and ShoalError when it
    ends without one.
    """
    if config.resume and (finished := finished_summary(config.output)):
        return {**finished, "finished_before": True}
    if not config.resume:
        require_free(config.output, force=config.force)
    with open_dataset(config.data):
        pass  # one that cannot be used is said at once, and not by ranks that had to start first
    try:
        config.output.mkdir(parents=True, exist_ok=True)
        (config.output / SUMMARY).unlink(missing_ok=True)
        log = (config.output / LOG_NAME).open("w")
    except OSError as error:
        raise TrainingError(f"cannot write to {config.output}: {error.strerror}; choose another --output") from error
    # Never from the folder where the user stands: what lies there may be anybody's.
    launch = [sys.executable, "-P", "-m", "trainer.launch", "--standalone", f"--nproc-per-node={ranks}"]
    limits = [f"--max-restarts={RESTARTS}", f"--shutdown-timeout={STOP_SECONDS}"]
    command = [*launch, *limits, "-m", "trainer", *as_arguments(config)]
    # A session of its own: Ctrl-C reaches this process alone, which passes it on as a request to stop.
    with (
        log,
        subprocess.Popen(
            command,
            env={**os.environ, **RANK_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as running,
    ):
        asked = _watch(running, config.output, bars)
    said = (config.output / LOG_NAME).read_text("utf-8", "replace")
    summary = read_summary(config.output)
    if asked and summary is None:
        raise asked  # before there was anything to keep
    if summary is None or (running.returncode and not asked):
        raise failure(said, f"the log is {config.output / LOG_NAME}")
    return {**summary, "stopped_by": name_of(asked)} if asked and summary["stopped"] else summary


def read_summary(folder: Path) -> dict[str, Any] | None:
    """What a run's summary.json says, or nothing when the run has not written one.

    Raises ShoalError for one that lacks what is read of it: that of a deployment's run was written on a node.
    """
    path = folder / SUMMARY
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ShoalError(f"{path} is no summary of a training: it is damaged; {_DISTRUST}")
    wanted = _FIELDS if content.get("stopped") is True else {**_FIELDS, **_MEASURES}
    for name, is_fit in wanted.items():
        if name not in content or not is_fit(content[name]):
            raise ShoalError(f"{path} is no summary of a training: it lacks a fit '{name}'; {_DISTRUST}")
    return content


def _is_count(value: Any) -> bool:
    return type(value) is int


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "stopped": lambda value: isinstance(value, bool),
    **dict.fromkeys(("rows", "rows_seen", "epochs", "world_size"), _is_count),
    **dict.fromkeys(("seconds", "samples_per_second"), _is_number),
    **dict.fromkeys(
        ("rows_of_ranks", "rows_claimed"), lambda value: isinstance(value, list) and all(map(_is_count, value))
    ),
    **dict.fromkeys(("share_of_ideal", "balanced"), lambda value: value is None or _is_number(value)),
    "lost": lambda value: value is None or (_are_numbers(value) and "communication" in value),
    "times": _are_numbers,
    "wall": _is_number,
    "profile": lambda value: isinstance(value, list) and all(map(_are_numbers, value)),
}
"""What is read of a summary, with what it must be; and of one of a run that came to its end, besides:"""
_MEASURES: Mapping[str, Callable[[Any], bool]] = dict.fromkeys(
    ("accuracy", "balanced_accuracy", "f1_positive", "f1_negative", "majority"), _is_number
)
_DISTRUST = "find out from the logs beside it who wrote it so, and train again"


def failure(said: str, where: str) -> TrainingError | ShoalError:
    """What the output of a run means, that of one machine or of all, one after the other: what failed first, in the
    trainer's sentence; or else the last line. And where all of it is, unless the sentence says enough."""
    told = [failure for failure in map(faults.parse, said.splitlines()) if failure]
    if told:
        found = faults.first(told)
        return TrainingError(f"{found}" if found.kind is faults.Kind.FINAL else f"{found}; {where}")
    for line in said.splitlines():
        if line.startswith(_FAILURE_PREFIX):
            return TrainingError(line.removeprefix(_FAILURE_PREFIX))
    last = [line for line in said.splitlines() if line.strip(" =-")][-1:] or ["it said nothing"]
    return ShoalError(f"the training ended without a result: {last[0].strip()}; {where}")


def _watch(running: "subprocess.Popen[bytes]", output: Path, bars: Bars) -> KeyboardInterrupt | None:
    """Show progress until the run ends; returns what asked it to stop, if anything did."""
    record = output / RECORD
    started = time.time()
    asked: KeyboardInterrupt | None = None
    with Board(output / FOLDER) as board:
        view = RunView(bars, board)
        try:
            while running.poll() is None:
                try:
                    _look(record, started, view)
                    time.sleep(_PAUSE_SECONDS)
                except KeyboardInterrupt as interrupt:
                    if asked:
                        raise
                    asked = interrupt
                    hear(asked)
                    running.send_signal(signal.SIGTERM)
        except BaseException:
            _end(running)
            raise
        finally:
            _look(record, started, view)  # its last lines came after the last look
    return asked


def _look(record: Path, started: float, view: RunView) -> None:
    """Show what the run has added to its record; one that is older is that of a run before."""
    if record.exists() and record.stat().st_mtime >= started:
        with record.open("rb") as lines:
            if os.fstat(lines.fileno()).st_size < view.offset:
                view.begin_again()
            lines.seek(view.offset)
            view.feed(lines.read())


def _end(running: "subprocess.Popen[bytes]") -> None:
    """End a run that nobody waits for any more; the launcher ends its ranks."""
    running.send_signal(signal.SIGTERM)
    try:
        running.wait(STOP_SECONDS + 10)
    except subprocess.TimeoutExpired:
        running.kill()
