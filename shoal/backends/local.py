"""Backend on this machine. trainer/launch.py starts the ranks, which write to the output folder of the run.

Do not kill the ranks on Ctrl-C, because they first finish their step and write a checkpoint.
"""

import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bootstrap.node.folder import Folder
from common.errors import TrainingError, UsageError
from common.starter import END_SECONDS
from corpus.dataset import open_dataset
from shoal.runs.backend import Backend
from shoal.runs.files import Copied, RunFiles
from shoal.runs.run import Run
from shoal.runs.sources.source import DataAccess, Sidecar
from shoal.runs.state import RunState
from trainer.output.run_files import CHECKPOINT_PATTERN, CHECKPOINTS, LAUNCH, RECORD, SUMMARY, missing_output
from trainer.output.summary import read_summary
from trainer.rank_processes import LOG, STOP_SECONDS, start_ranks


class LocalData(DataAccess):
    """Data for the ranks on this machine."""

    def dataset(self, address: str | None) -> str:
        """Return the path of a dataset, after checking it. Raises DataError if the dataset is invalid."""
        if address is None:
            raise UsageError("--local needs --data FILE, a dataset made by `shoal preprocess`")
        with open_dataset(Path(address)):
            return address


class LocalBackend(Backend):
    """Backend on this machine, which executes one run with `ranks` ranks."""

    name = "this machine"
    pause = 0.3
    outlives_command = False
    data = LocalData()

    def __init__(self, ranks: int = 1) -> None:
        self._ranks = ranks
        self.options = {"local": (), "nodes": (str(ranks),)}
        self._resources, self._sidecar, self._is_stopping = ExitStack(), Sidecar(), False
        self._output = Path()
        self._known: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, run: Run) -> Run:
        """Start the readers, if the source has readers, and then the ranks."""
        assert run.data.local_path is not None
        self._output = run.output
        self._sidecar = self._resources.enter_context(run.data.sidecar())
        try:
            run.output.mkdir(parents=True, exist_ok=True)
            if run.forces:  # without its summary, the replaced run would look unfinished
                for checkpoint in (run.output / CHECKPOINTS).glob(CHECKPOINT_PATTERN):
                    checkpoint.unlink()
            for name in (SUMMARY, LAUNCH):
                (run.output / name).unlink(missing_ok=True)
            log = self._resources.enter_context((run.output / LOG).open("w"))
        except OSError as error:
            raise TrainingError(f"cannot write to {run.output}: {error.strerror}; choose another --output") from error
        self._known = Folder(run.output).size(RECORD)
        self._process = self._resources.enter_context(start_ranks(run.config, ranks=self._ranks, log=log))
        return run

    def state(self, name: str) -> RunState:  # noqa: ARG002
        """Return the state of the ranks. Raises DataError or ShoalError if a reader has failed."""
        assert self._process is not None
        status, reading = self._process.poll(), self._sidecar.read() if self._sidecar.read else None
        if status is None:
            self._sidecar.check()
            return RunState(phase="running", reading=reading)
        summary = read_summary(self._output)
        if self._is_stopping or (not status and summary is not None and summary["stopped"]):
            outcome = "stopped"
        else:
            outcome = "failed" if summary is None or status else "finished"
        error = ""
        if outcome == "failed" and status < 0:
            killed = signal.Signals(-status).name
            then = f"its ranks end within {END_SECONDS} seconds; then restart with --resume"
            error = f"the launcher of the ranks was killed by {killed}; {then}"
        elif outcome == "failed" and not (self._output / LOG).exists():
            error = str(missing_output(self._output))
        return RunState(phase=outcome, outcome=outcome, error=error, logs=(LOG,), reading=reading)

    def stop(self, name: str, *, at_once: bool = False) -> None:  # noqa: ARG002
        """Request a stop from the launcher of the ranks. With `at_once`, also wait until it has exited."""
        if self._process is None or self._process.poll() is not None:
            return
        if at_once or not self._is_stopping:
            self._is_stopping = True
            self._process.send_signal(signal.SIGTERM)
        if at_once:
            try:
                self._process.wait(STOP_SECONDS + 10)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def files(self, name: str) -> RunFiles:  # noqa: ARG002
        return _FilesHere(store=Folder(self._output), folder="", known=self._known)

    def __exit__(self, *error: Any) -> None:
        """Wait for the launcher of the ranks, and stop the readers."""
        self._resources.__exit__(*error)


class _FilesHere(RunFiles):
    """Files that the run has written to its output folder."""

    def copy(self, output: Path) -> Copied:
        return Copied(output=output, source=self.address, files=list(output.glob("*")))
