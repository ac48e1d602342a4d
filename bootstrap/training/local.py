"""Training on this machine: ranks started by trainer/launch.py, followed by their record, stopped with a checkpoint.

Do not kill the ranks on Ctrl-C, because they have to finish their step and write a checkpoint.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bootstrap.config_file import CONFIG, read_config, write_config
from bootstrap.interrupt import mark_handled, name_of
from bootstrap.progress import Bars
from bootstrap.training.outcome import read_summary, write_launch
from bootstrap.training.run_view import RunView
from bootstrap.training.tensorboard import FOLDER, TensorBoardWriter
from corpus.dataset import open_dataset
from corpus.options import flag
from corpus.stream.progress import Status
from corpus.stream.settings import read_settings
from experiments.runs import LAUNCH
from trainer.command_line import as_words
from trainer.config import TrainConfig
from trainer.errors import TrainingError
from trainer.output.files import RECORD, SUMMARY, finished_summary, require_free_output
from trainer.rank_processes import LOG, STOP_SECONDS, failure_in, start_ranks
from trainer.registry import WORD_MODELS

_PAUSE_SECONDS = 0.3
_OF_ONE_COMMAND = ("resume", "force", "json")
"""Options that a command which repeats the run does not have."""


def train_locally(
    config: TrainConfig,
    *,
    ranks: int,
    bars: Bars,
    predicted: dict[str, Any] | None = None,
    look: Callable[[], None] = lambda: None,
    read: Callable[[], Status] | None = None,
    given: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Train with `ranks` processes on this machine; returns the content of summary.json. What was `predicted` of it is
    kept beside what it took. `look` is called again and again meanwhile, to look after what runs beside the ranks; its
    error ends them. `read` returns what readers of text that keeps coming have done. `given` are the words of the
    options of `shoal train`, where that runs; with the configuration they make the file that repeats the run.

    Ctrl-C and SIGTERM stop the run with a checkpoint. That is no error: `stopped` is true, and `stopped_by` is the
    signal's name. With `config.resume` a finished run is left as it is, and `finished_before` is true. Raises DataError
    for a dataset that cannot be used, TrainingError with the trainer's own sentence, and ShoalError when the run ends
    without one.
    """
    began, since = time.time(), time.monotonic()
    if finished := finished_before(config):
        return finished
    # Data that cannot be used end the command here, before ranks start.
    if config.model in WORD_MODELS:
        read_settings(config.data)
    else:
        with open_dataset(config.data):
            pass
    try:
        config.output.mkdir(parents=True, exist_ok=True)
        _keep_options(config, given or {"local": (), "nodes": (str(ranks),)})
        for name in (SUMMARY, LAUNCH):
            (config.output / name).unlink(missing_ok=True)
        log = (config.output / LOG).open("w")
    except OSError as error:
        raise TrainingError(f"cannot write to {config.output}: {error.strerror}; choose another --output") from error
    with log, start_ranks(config, ranks=ranks, log=log) as running:
        stop_request = _watch(running, config.output, bars, look, read)
    log_text = (config.output / LOG).read_text("utf-8", "replace")
    summary = read_summary(config.output)
    if stop_request and summary is None:
        raise stop_request  # it was stopped before it wrote a checkpoint
    if summary is None or (running.returncode and not stop_request):
        raise failure_in(log_text, f"the log is {config.output / LOG}")
    took = {"seconds": time.monotonic() - since}
    told = {**took, "predicted": predicted} if predicted else took
    write_launch(config.output, goes_on=config.resume, where="this machine", began=began, **told)
    summary |= {"launch": told} if predicted else {}
    return {**summary, "stopped_by": name_of(stop_request)} if stop_request and summary["stopped"] else summary


def _keep_options(config: TrainConfig, given: Mapping[str, Sequence[str]]) -> None:
    """Write the file that repeats the run. A run that goes on keeps options that were given when it began."""
    path = config.output / CONFIG
    words = {**{flag(name)[2:]: each for name, each in as_words(config).items()}, **given}
    if "input" in given:
        del words["data"]  # made of the input
    if config.resume and path.exists():
        before = read_config(path)[1].items()
        words = {name: () if each.switch else each.words for name, each in before if each.switch is not False} | words
    write_config(path, "train", {name: each for name, each in words.items() if name not in _OF_ONE_COMMAND})


def finished_before(config: TrainConfig) -> dict[str, Any] | None:
    """The summary of the finished run that is asked to go on, with `finished_before` true; None for any other run.
    Raises TrainingError for a run from the beginning whose output is not free."""
    if not config.resume:
        require_free_output(config.output, force=config.force)
        return None
    finished = finished_summary(config.output)
    return finished and {**finished, "finished_before": True}


def _watch(
    running: "subprocess.Popen[bytes]",
    output: Path,
    bars: Bars,
    look: Callable[[], None],
    read: Callable[[], Status] | None,
) -> KeyboardInterrupt | None:
    """Show progress until the run ends; returns the interrupt that asked it to stop, if there was one."""
    record = output / RECORD
    started = time.time()
    stop_request: KeyboardInterrupt | None = None
    bars.stage("start the ranks", 0)
    with TensorBoardWriter(output / FOLDER) as board:
        view = RunView(bars, board, read=read)
        try:
            while running.poll() is None:
                try:
                    _show_record(record, started, view)
                    look()
                    time.sleep(_PAUSE_SECONDS)
                except KeyboardInterrupt as interrupt:
                    if stop_request:
                        raise
                    stop_request = interrupt
                    mark_handled(stop_request)
                    running.send_signal(signal.SIGTERM)
        except BaseException:
            _end(running)
            raise
        finally:
            _show_record(record, started, view)  # the last lines may have come since
    return stop_request


def _show_record(record: Path, started: float, view: RunView) -> None:
    """Show what the run has added to its record. An older record is that of an earlier run."""
    if not (record.exists() and record.stat().st_mtime >= started):
        view.feed(b"")  # the ranks may wait for text
        return
    with record.open("rb") as lines:
        if os.fstat(lines.fileno()).st_size < view.offset:
            view.begin_again()
        lines.seek(view.offset)
        view.feed(lines.read())


def _end(running: "subprocess.Popen[bytes]") -> None:
    """End a run; the launcher ends its ranks."""
    running.send_signal(signal.SIGTERM)
    try:
        running.wait(STOP_SECONDS + 10)
    except subprocess.TimeoutExpired:
        running.kill()
