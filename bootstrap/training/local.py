"""Training on this machine: ranks started by trainer/launch.py, watched by their record, stopped with a checkpoint.

The easy mistake is to kill the ranks on Ctrl-C: they are asked to stop, finish their step, write a checkpoint,
and end well.
"""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from bootstrap.interrupt import mark_handled, name_of
from bootstrap.progress import Bars
from bootstrap.training.outcome import read_summary
from bootstrap.training.run_view import RunView
from bootstrap.training.tensorboard import FOLDER, Board
from corpus.dataset import open_dataset
from trainer.config import TrainConfig
from trainer.errors import TrainingError
from trainer.output.files import RECORD, SUMMARY, finished_summary, require_free_output
from trainer.rank_processes import LOG, STOP_SECONDS, failure_in, start_ranks

_PAUSE_SECONDS = 0.3


def train_locally(config: TrainConfig, *, ranks: int, bars: Bars) -> dict[str, Any]:
    """Train with `ranks` processes on this machine; returns what summary.json says.

    Ctrl-C and SIGTERM stop the run with a checkpoint; that is a good end, with `stopped` true, and `stopped_by` the
    signal's name. A finished run that is to be gone on with is left as it is; `finished_before` is true then. Raises
    DataError for a dataset that cannot be used, TrainingError with the trainer's own sentence, and ShoalError when it
    ends without one.
    """
    if config.resume and (finished := finished_summary(config.output)):
        return {**finished, "finished_before": True}
    if not config.resume:
        require_free_output(config.output, force=config.force)
    with open_dataset(config.data):
        pass  # one that cannot be used is said at once, and not by ranks that had to start first
    try:
        config.output.mkdir(parents=True, exist_ok=True)
        (config.output / SUMMARY).unlink(missing_ok=True)
        log = (config.output / LOG).open("w")
    except OSError as error:
        raise TrainingError(f"cannot write to {config.output}: {error.strerror}; choose another --output") from error
    with log, start_ranks(config, ranks=ranks, log=log) as running:
        asked = _watch(running, config.output, bars)
    said = (config.output / LOG).read_text("utf-8", "replace")
    summary = read_summary(config.output)
    if asked and summary is None:
        raise asked  # before there was anything to keep
    if summary is None or (running.returncode and not asked):
        raise failure_in(said, f"the log is {config.output / LOG}")
    return {**summary, "stopped_by": name_of(asked)} if asked and summary["stopped"] else summary


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
                    mark_handled(asked)
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
