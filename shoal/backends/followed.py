"""Follows remote runs: waits for them, stops them, and copies their results.

Commands and nodes communicate through JSON documents in a store."""

import re
import signal
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.node.node_documents import Attempt, RunEnd
from bootstrap.node.store import Store
from common import names
from common.display import plural
from common.errors import ShoalError
from common.files import read_tail
from common.names import RUNS, log_name
from common.progress import reporter
from shoal.aws import fetched
from shoal.aws.deployment import Deployment
from shoal.aws.guard import find_announcement
from shoal.aws.retry import Abandoned, is_credentials_error
from shoal.backends.place import Run, RunResult
from shoal.interrupt import Detached, name_of
from shoal.runs.run import LaunchOptions
from shoal.runs.run_view import RecordView, RunView
from shoal.runs.store import Copied, Launch, copy_results
from trainer.output.run_files import RECORD
from trainer.rank_processes import STOP_SECONDS, failure_in

_PAUSE_SECONDS = 1.0
LONGEST_STOP_SECONDS = 3 * STOP_SECONDS
"""Maximum seconds for a stop: agents read the request, ranks exit, and nodes copy their results."""
_ANSWER_SECONDS = 120.0
"""Maximum seconds until the agent of a ready node reports that it has read a request."""
RESUME_HINT = "; to continue from the last checkpoint, repeat the command with --resume"
_FILES = r"datasets-[0-9a-f]{32}-dataset\.h5|texts-[0-9a-f]{12}\.h5"
"""Pattern of the file names that datasets have on nodes (bootstrap/node/machine.py)."""


class RemoteRun(Run):
    """Run with its record and results in a store. It can continue after its command has ended."""

    can_detach = True
    launch_options: LaunchOptions
    store: Store
    attached = False
    """True if the command only follows the run: it starts and ends no nodes, and Ctrl-C ends only the command."""
    deployment: Deployment | None = None
    """Deployment on which the run executes; None on hosts."""
    stage = "start the ranks"
    """Title of the progress bar before the first step."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def is_followed(self) -> bool:
        """True if an earlier command started the run. The whole record of the run is then shown."""

    @abstractmethod
    def give_up(self) -> None:
        """End the run, because no command waits for its results any longer."""

    def why_stopped(self, summary: Mapping[str, Any]) -> str:  # noqa: ARG002
        """Return why the run stopped without a request by this command.

        The text completes "the run stopped, because".
        """
        why = self.why_guard_stopped()
        return f"the guard stopped it, because {why}" if why else "somebody stopped it"

    def why_guard_stopped(self) -> str:
        """Return why the deployment's guard stopped the run, and what to do before --resume; "" if it did not."""
        found = find_announcement(self.deployment) if self.deployment else None
        if found is None or not found.stops_runs:
            return ""
        return f"{found.reason}; do this before --resume: {found.remedy[:1].lower()}{found.remedy[1:].rstrip('.')}"

    @abstractmethod
    def _failure(self, copied: Copied, *, stopped: bool) -> Exception | None:
        """Return the error for a run that failed; None if the run did not fail."""

    def _machines(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return the summary's fields `nodes` and `readers`; an empty mapping for a place that costs nothing."""
        return {}

    def detached_fields(self) -> Mapping[str, Any]:
        return {"run": self.name, **({"deployment": self.deployment.name} if self.deployment else {})}

    def record(self) -> RecordView:
        """Return a view that shows the run's record in the store."""
        reporter().stage(self.stage)
        view, key = RunView(spent=self.spent, read=self._reading()), f"{RUNS}{self.name}/{RECORD}"
        return RecordView(view, self.store, key, before=None if self.is_followed else self.store.size(key))

    def _reading(self) -> Callable[[], Any] | None:
        """Return a function that returns the readers' progress; None without readers."""
        return None

    def collect(self, *, stopped: bool) -> RunResult:
        """Copy the run's files to the output folder.

        For a deployment, also record in its bucket that they were copied.
        """
        copied = copy_results(self.store, self.name, self.config.output)
        summary = copied.summary
        if self.deployment is not None and not copied.refused:
            bucket = self.deployment.output(names.OUTPUT_DATA_BUCKET)
            s3 = self.deployment.session.client("s3")
            fetched.record(s3, bucket, {self.name: copied.tags})
        self.give_up()
        if summary is not None and summary["stopped"] and not stopped:
            reporter().note(f"the run stopped, because {self.why_stopped(summary)}")
        machines = self._machines()
        return RunResult(
            summary=summary,
            failure=self._failure(copied, stopped=stopped),
            details={**machines, "run": f"{self.store.name}/{RUNS}{self.name}/", "refused": copied.refused},
            launch=machines,
        )

    @contextmanager
    def _ended_after_errors(self) -> Iterator[None]:
        """End the run after an error, unless the command detaches from it."""
        try:
            yield
        except (Abandoned, Detached):
            raise
        except BaseException:
            if not self.attached:
                try:
                    self.give_up()
                except (BotoCoreError, ClientError, ShoalError, KeyboardInterrupt):
                    if self.deployment is not None:
                        reporter().note(
                            f"the run {self.name} may continue; to stop it: shoal stop {self.deployment.name}"
                        )
            raise

    def detaches_on(self, interrupt: KeyboardInterrupt) -> bool:
        """Return whether this interrupt ends only the command, while the run continues."""
        return self.attached or name_of(interrupt) == signal.SIGHUP.name

    @contextmanager
    def _detaching(self) -> Iterator[None]:
        """Raise Detached if the terminal is closed or the credentials expire, because the run continues without the
        command.
        """
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if not self.detaches_on(interrupt):
                raise
            raise Detached from None
        except (BotoCoreError, ClientError) as error:
            if not is_credentials_error(error):
                raise
            raise Detached(f"AWS no longer accepts your credentials ({error})") from error


class AgentRun(RemoteRun):
    """Run on nodes or hosts, executed by their agents."""

    launch: Launch
    look_seconds = 10.0
    """Seconds between two checks of the nodes."""
    _shown: Attempt | None = None
    _looked_at: float | None = None
    _end: RunEnd | None = None
    _deadline: float | None = None

    @property
    def name(self) -> str:
        return self.launch.run

    @property
    def is_followed(self) -> bool:
        return self.launch.already_started

    def give_up(self) -> None:
        self.launch.forget()

    @abstractmethod
    def look_at_nodes(self) -> None:
        """Check the nodes. Raises ShoalError if no node is left and no new node is starting."""

    def wait_for_data(self) -> None:
        """Wait until all nodes have their data, or until one node has failed to read its data.

        The progress bar shows the number of rows that all nodes have read.

        Raises ShoalError for a node that does not answer. With `detach`, raises Detached when an attempt has started.
        """
        launch, since = self.launch, time.monotonic()
        while True:
            self._look()
            statuses, attempt = launch.statuses(), launch.attempt()
            if launch.end() is not None or any(each.over for each in statuses.values()):
                return
            if self.launch_options.detach and attempt:
                raise Detached
            if attempt and all(name in statuses and statuses[name].has_reached("staged") for name in attempt.instances):
                return
            silent = [each for each in launch.started if attempt is None and each not in statuses]
            if silent and time.monotonic() - since > _ANSWER_SECONDS:
                raise ShoalError(f"the agent of the node {silent[0]} does not answer; {launch.when_silent}")
            if read := min((each.read for each in statuses.values()), default=0):
                reporter().at(read)
            reporter().tick()
            time.sleep(_PAUSE_SECONDS)

    def is_over(self) -> bool:
        """Return whether the run has ended on all nodes.

        Raises ShoalError if all nodes are lost before the end of the run, or if nodes do not stop in time.
        """
        self._end = self.launch.end()
        if self._end is None:
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise ShoalError(
                    f"the nodes did not stop in time, so Shoal ends the run; its files are in {self.launch.left_in}"
                )
            self._look()
        return self._end is not None

    def stop(self) -> None:
        """Request a stop with a checkpoint, and start the time limit for the stop."""
        if not self.launch.request.stop:
            self.launch.ask_to_stop()
        if self._deadline is None:  # set it even if an earlier command requested the stop
            self._deadline = time.monotonic() + LONGEST_STOP_SECONDS

    def _look(self) -> None:
        """Show a new attempt and, every `look_seconds`, problems of the nodes.

        Raises ShoalError if no node is left and no new node is starting.
        """
        attempt, now = self.launch.attempt(), time.monotonic()
        if self._looked_at is None:
            self._shown, self._looked_at, self._troubles = attempt, now, dict[str, str]()
        if attempt is not None and attempt is not self._shown:
            if attempt.why:
                reporter().note(
                    f"{attempt.why}; attempt {attempt.number} continues on {plural(len(attempt.members), 'node')}"
                )
            self._shown = attempt
        if now - self._looked_at < self.look_seconds:
            return
        self._looked_at = now
        for instance, status in self.launch.statuses().items():
            if status.trouble and self._troubles.get(instance) != status.trouble:
                reporter().note(f"the node {instance}: {status.trouble}")
            self._troubles[instance] = status.trouble
        self.look_at_nodes()

    def _failure(self, copied: Copied, *, stopped: bool) -> Exception | None:
        """Return the error for a failed run, from its nodes' report or, without a report, from its logs.

        Returns None if the run did not fail.

        In a message from a log, the name of the source replaces the path that the dataset has on a node.
        """
        end = self._end
        if end is not None and end.error:
            log = f"; its log is in {self.launch.left_in}{RESUME_HINT}" if end.error.startswith("reader ") else ""
            return ShoalError(f"{end.error}{log}")
        was_stopped, summary = end is not None and end.outcome == "stopped", copied.summary
        if was_stopped and summary is None and not stopped:
            return ShoalError(f"run {self.launch.run} was stopped before its first checkpoint; start it again")
        if stopped or was_stopped or (summary is not None and not summary["stopped"]):
            return None
        output, attempt = self.config.output, self.launch.attempt()
        count, number = (len(attempt.trainers), attempt.number) if attempt else (0, 1)
        logs = [output / log_name(f"node-{each}", number) for each in range(count)]
        text = "\n".join(read_tail(path) for path in logs if path in copied.files)
        failed = failure_in(text, f"the logs are in {output}")
        on_nodes = rf"\S*/(datasets/({_FILES})|streams/{re.escape(self.launch.run)}(/[\w-]+)*)"
        return type(failed)(re.sub(on_nodes, self.prepared.label, str(failed)))
