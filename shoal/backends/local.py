"""Place on this machine. trainer/launch.py starts the ranks, and the run's record shows their progress.

Do not kill the ranks on Ctrl-C, because they first finish their step and write a checkpoint.
"""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bootstrap.node.folder import Folder
from common.errors import TrainingError, UsageError
from common.files import read_tail
from common.progress import reporter
from common.starter import END_SECONDS
from corpus.dataset import open_dataset
from shoal.backends.place import Place, Run, RunResult
from shoal.runs.run_view import RecordView, RunView
from shoal.runs.sources.source import DataSource, Prepared, Sidecar
from trainer.config import TrainConfig
from trainer.output.run_files import (
    CHECKPOINT_PATTERN,
    CHECKPOINTS,
    LAUNCH,
    RECORD,
    SUMMARY,
    finished_summary,
    missing_output,
    require_free_output,
)
from trainer.output.summary import read_summary
from trainer.rank_processes import LOG, STOP_SECONDS, failure_in, start_ranks


class LocalPlace(Place):
    """Place on this machine, with `ranks` ranks."""

    name = "this machine"
    pause = 0.3

    def __init__(self, ranks: int = 1) -> None:
        self.ranks: int = ranks
        self.options = {"local": (), "nodes": (str(ranks),)}

    def dataset(self, address: str | None) -> str:
        """Return the path of a dataset, after checking it. Raises DataError if the dataset is invalid."""
        if address is None:
            raise UsageError("--local needs --data FILE, a dataset made by `shoal preprocess`")
        with open_dataset(Path(address)):
            return address

    def finished_before(self, config: TrainConfig) -> dict[str, Any] | None:
        """Return the summary of the run to resume if this run has already finished; otherwise None."""
        if not config.resume:
            require_free_output(config.output, force=config.force)
            return None
        finished = finished_summary(config.output)
        return finished and {**finished, "finished_before": True}

    def prepare(self, source: DataSource, config: TrainConfig) -> Run:
        """Prepare a run. A dataset of raw texts is created on this machine; an existing dataset is checked."""
        return _LocalRun(source.prepare(self, config), config, self.ranks)


class _LocalRun(Run):
    """Run on this machine."""

    def __init__(self, prepared: Prepared, config: TrainConfig, ranks: int) -> None:
        self.prepared, self.config, self._ranks = prepared, config, ranks
        self._sidecar, self._stopping, self._output = Sidecar(), False, Folder(config.output)
        self._before: int | None = None
        """Size in bytes that the record had before this start; None if there was no record."""
        self._running: subprocess.Popen[bytes] | None = None

    @contextmanager
    def started(self) -> Iterator[None]:
        """Start the readers, if the source has readers, and then the ranks. After the block, no rank is running."""
        assert self.prepared.local_path is not None
        output = self.config.output
        with self.prepared.sidecar() as self._sidecar:
            try:
                output.mkdir(parents=True, exist_ok=True)
                if self.config.force:  # without its summary, the replaced run would look unfinished
                    for checkpoint in (output / CHECKPOINTS).glob(CHECKPOINT_PATTERN):
                        checkpoint.unlink()
                for name in (SUMMARY, LAUNCH):
                    (output / name).unlink(missing_ok=True)
                log = (output / LOG).open("w")
            except OSError as error:
                raise TrainingError(f"cannot write to {output}: {error.strerror}; choose another --output") from error
            self._before = self._output.size(RECORD)
            config = replace(self.config, data=self.prepared.local_path)
            with log, start_ranks(config, ranks=self._ranks, log=log) as self._running:
                try:
                    yield
                except BaseException:
                    self._end()
                    raise

    def record(self) -> RecordView:
        """Return a view that shows the run's record in the output folder."""
        reporter().stage("start the ranks")
        view = RunView(read=self._sidecar.read)
        return RecordView(view, self._output, RECORD, before=self._before)

    def is_over(self) -> bool:
        if self._process.poll() is not None:
            return True
        self._sidecar.check()
        return False

    def stop(self) -> None:
        """Request a stop from the launcher of the ranks."""
        if not self._stopping:
            self._stopping = True
            self._process.send_signal(signal.SIGTERM)

    def collect(self, *, stopped: bool) -> RunResult:
        log = self.config.output / LOG
        summary = read_summary(self.config.output)
        failed = not stopped and (summary is None or self._process.returncode)
        if failed and self._process.returncode < 0:
            killed = signal.Signals(-self._process.returncode).name
            then = f"its ranks end within {END_SECONDS} seconds; then restart with --resume"
            return RunResult(
                summary=None, failure=TrainingError(f"the launcher of the ranks was killed by {killed}; {then}")
            )
        if failed and not log.exists():
            return RunResult(summary=None, failure=missing_output(self.config.output))
        failure = failure_in(read_tail(log), f"the log is {log}") if failed else None
        return RunResult(summary=summary, failure=failure)

    @property
    def _process(self) -> "subprocess.Popen[bytes]":
        assert self._running is not None
        return self._running

    def _end(self) -> None:
        """Stop the ranks through their launcher."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS + 10)
        except subprocess.TimeoutExpired:
            self._process.kill()
