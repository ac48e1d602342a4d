"""Follows a run at any backend until it ends, and shows its progress."""

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import DataError, ShoalError
from common.progress import reporter
from corpus.stream.progress import Status
from shoal.aws.retry import Abandoned, is_credentials_error, retrying
from shoal.interrupt import Detached, name_of
from shoal.runs.backend import Backend
from shoal.runs.run import Run
from shoal.runs.run_view import RecordView, RunView
from shoal.runs.state import RunState
from shoal.ssh.connection import LostError


def follow(
    run: Run,
    backend: Backend,
    *,
    attached: bool = False,
    detach: bool = False,
    on_state: Callable[[RunState], None] = lambda _: None,
) -> tuple[RunState, KeyboardInterrupt | None]:
    """Follow a run until it has ended. Return its last state, and the interrupt with which the user requested a stop.

    Once the ranks have their data, the first interrupt requests a stop with a checkpoint. An earlier one is raised.

    Args:
        run: The run, which has started.
        backend: The backend of the run.
        attached: Whether the command only follows the run: an interrupt then ends the command, not the run.
        detach: Whether to raise Detached as soon as the run continues without the command.
        on_state: Function that is called with each state.

    Raises:
        Detached: The command leaves the run: the terminal was closed, or the backend no longer accepts the command.
        ShoalError: The run cannot continue, or does not stop in time.
        KeyboardInterrupt: An interrupt before the ranks had their data, or a second one. It is Abandoned if AWS has not
            answered the stop request by then.
    """
    progress, stop_request = _Progress(run, backend, on_state), None
    with _detaching(backend):
        while True:
            try:
                if stop_request:
                    backend.stop(run.name)
                    progress.limit_stop()
                while not (state := progress.update()).has_ended:
                    if detach and state.is_independent:
                        raise Detached
                    time.sleep(backend.pause)
                return state, stop_request
            except KeyboardInterrupt as interrupt:
                if backend.outlives_command and (attached or name_of(interrupt) == signal.SIGHUP.name):
                    raise Detached from None
                if stop_request:
                    raise (Abandoned(interrupt) if retrying.unanswered else interrupt) from None
                progress.announce_stop(interrupt)
                stop_request = interrupt


@contextmanager
def _detaching(backend: Backend) -> Iterator[None]:
    """Raise Detached if AWS no longer accepts the command, or no host answers, because the run continues without it."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        if not (backend.outlives_command and is_credentials_error(error)):
            raise
        raise Detached(f"AWS no longer accepts your credentials ({error})") from error
    except LostError as error:
        raise Detached(f"{error}; the run continues; to follow it, repeat the command") from error


class _Progress:
    """Shows the states of a run: its notes, the staging of its data, and then its record."""

    def __init__(self, run: Run, backend: Backend, on_state: Callable[[RunState], None]) -> None:
        self._run, self._backend, self._on_state = run, backend, on_state
        self._record: RecordView | None = None
        self._state = RunState(phase="")
        self._shown: set[str] = set()
        """Notes that were shown."""
        self._stage = ""
        """Title of the stage that was started last."""
        self._deadline = math.inf

    def announce_stop(self, interrupt: KeyboardInterrupt) -> None:
        """Announce the stop of a run that can continue without its command.

        Raises `interrupt` if the ranks do not have their data yet.
        """
        if not self._backend.outlives_command:
            return
        if self._record is None:
            raise interrupt from None
        reporter().note("stopping the run with a checkpoint; a run started with --detach continues without its command")

    def limit_stop(self) -> None:
        """Start the time limit of a stop."""
        if self._deadline == math.inf:
            self._deadline = time.monotonic() + self._backend.longest_stop

    def update(self) -> RunState:
        """Read the state of the run, show it, and return it.

        Raises ShoalError if the run cannot continue, or has not stopped in time.
        """
        try:
            state = self._state = self._backend.state(self._run.name)
        except (DataError, ShoalError):
            if self._record:
                self._record.update()
            raise
        self._show(state)
        self._on_state(state)
        if time.monotonic() > self._deadline and not state.has_ended:
            left = self._backend.files(self._run.name).address
            raise ShoalError(f"the nodes did not stop in time, so Shoal ends the run; its files are in {left}")
        return state

    def _show(self, state: RunState) -> None:
        """Show the notes of a state, and the staging of the data or, from the start of the ranks on, their record."""
        for note in state.notes:
            if note not in self._shown:
                reporter().note(note)
        self._shown.update(state.notes)
        if self._record is None and state.staging is None:
            self._record = self._open_record(state)
        if self._record is not None:
            self._record.update()
        elif state.staging is not None:
            if state.staging.title != self._stage:
                reporter().stage(*state.staging)
                self._stage = state.staging.title
            if state.bytes_read:
                reporter().at(state.bytes_read)
            reporter().tick()

    def _open_record(self, state: RunState) -> RecordView:
        """Start the stage of the ranks, and return the view of their record."""
        reads_on_nodes = self._run.data.readers and self._run.data.local_path is None
        reporter().stage("read the text" if reads_on_nodes else "start the ranks")
        files = self._backend.files(self._run.name)
        read = (lambda: self._state.reading or Status()) if state.reading is not None else None
        return RecordView(
            RunView(spent=lambda: self._state.dollars, read=read), files.store, files.record_key, before=files.known
        )
