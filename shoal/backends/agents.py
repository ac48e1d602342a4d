"""Common part of the backends with agents on their machines: a deployment's nodes, and hosts.

A command and the agents communicate only through documents in a store.
"""

import time
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from bootstrap.node.node_documents import Attempt, NodeStatus
from common.display import plural
from common.errors import ShoalError
from common.names import RUNS, log_name
from corpus.raw_texts import describe_skipped_lines
from shoal.runs.backend import Backend
from shoal.runs.files import RunFiles
from shoal.runs.run import Run, requested_data
from shoal.runs.sources.source import Staging
from shoal.runs.state import RunState, StopReason
from shoal.runs.store import Launch, RequestedRuns
from trainer.output.run_files import RECORD
from trainer.rank_processes import STOP_SECONDS

LONGEST_STOP_SECONDS = 3 * STOP_SECONDS
"""Maximum seconds for a stop: agents read the request, ranks exit, and nodes copy their results."""
_ANSWER_SECONDS = 120.0
"""Maximum seconds until the agent of a ready node reports that it has read a request."""
RESUME_HINT = "; to continue from the last checkpoint, repeat the command with --resume"


class AgentBackend(Backend):
    """Backend with agents on its machines."""

    longest_stop = LONGEST_STOP_SECONDS
    look_seconds = 10.0
    """Seconds between two checks of the nodes."""
    staging: Staging | None = None
    """Progress bar until the machines have their data; None: the progress bar of the data."""
    when_silent: str
    """Last clause of the message that a node's agent does not answer."""

    def __init__(self, requests: RequestedRuns) -> None:
        self.requests = requests
        self._launch: Launch | None = None
        """Launch of the run that this command started or follows."""
        self._since: float | None = None
        """Monotonic time at which this command read the first state of the run."""
        self._looked_at = 0.0
        self._first_attempt = 0
        """Number of the latest attempt when this command read the first state of the run."""
        self._has_data = False

    @abstractmethod
    def look_at_nodes(self) -> None:
        """Check the nodes. Raises ShoalError if no node is left and no new node is starting."""

    @abstractmethod
    def new_launch(self, name: str) -> Launch:
        """Return the launch of a new run, or of a run to resume."""

    def launch(self, name: str) -> Launch:
        """Return the launch of a run that this command started, or that has the current request.

        Raises ShoalError if the run has no request.
        """
        if self._launch is None or self._launch.run != name:
            request = self.requests.read()
            if request is None or request.run != name:
                raise ShoalError(f"the run {name} has no request any longer; another command copied its results")
            self._launch = self.new_launch(name)
            self._launch.follow(request)
        return self._launch

    def state(self, name: str) -> RunState:
        """Return the state of a run, from the documents of its nodes. Every `look_seconds`, also check the nodes.

        Raises ShoalError for a node that does not answer, and if no node is left.
        """
        launch, now = self.launch(name), time.monotonic()
        end, attempts = launch.end(), launch.reports.attempts()
        latest = attempts[-1] if attempts else None
        if self._since is None:
            self._since = self._looked_at = now
            self._first_attempt = latest.number if latest else 0
        looks = end is None and now - self._looked_at >= self.look_seconds
        statuses = launch.reports.statuses(launch.started) if looks or not self._has_data else {}
        if looks:
            self._looked_at = now
            self.look_at_nodes()
        self._has_data = self._has_data or end is not None or _have_data(latest, statuses)
        silent = [each for each in launch.started if latest is None and each not in statuses]
        if silent and not self._has_data and now - self._since > _ANSWER_SECONDS:
            raise ShoalError(f"the agent of the node {silent[0]} does not answer; {self.when_silent}")
        count, number = (len(latest.trainers), latest.number) if latest else (0, 1)
        error = end.error if end else ""
        if error.startswith("reader "):
            error = f"{error}; its log is in {self.files(name).address}{RESUME_HINT}"
        return RunState(
            phase=end.outcome if end else "running" if launch.request.ready else "starting",
            outcome=end.outcome if end else "",
            error=error,
            logs=[log_name(f"node-{each}", number) for each in range(count)],
            is_stopping=launch.request.stop,
            attempts=attempts,
            staging=None if self._has_data else self.staging or requested_data(launch.request).staging,
            bytes_read=min((each.read for each in statuses.values()), default=0),
            is_independent=latest is not None and not any(each.over for each in statuses.values()),
            find_stop_reason=partial(StopReason, "somebody stopped it") if end and end.outcome == "stopped" else None,
            notes=[*self._attempt_notes(attempts), *_status_notes(statuses, skipped=self._has_data)],
        )

    def _attempt_notes(self, attempts: list[Attempt]) -> list[str]:
        return [
            f"{each.why}; attempt {each.number} continues on {plural(len(each.members), 'node')}"
            for each in attempts
            if each.number > self._first_attempt and each.why
        ]

    def requested_run(self, name: str, output: Path) -> Run:
        return Run.of_request(self.launch(name).request, output)

    def files(self, name: str) -> RunFiles:
        """Return the files of a run in the store. After they were copied, the request is removed."""
        launch, folder = self.launch(name), f"{RUNS}{name}/"
        known = None if launch.already_started else self.requests.store.size(f"{folder}{RECORD}")
        return RunFiles(store=self.requests.store, folder=folder, known=known, on_copied=lambda _: launch.forget())


def _have_data(latest: Attempt | None, statuses: Mapping[str, NodeStatus]) -> bool:
    """Return whether all nodes of an attempt have their data, or one node has failed to read its data."""
    if any(each.over for each in statuses.values()):
        return True
    return latest is not None and all(
        name in statuses and statuses[name].has_reached("staged") for name in latest.instances
    )


def _status_notes(statuses: Mapping[str, NodeStatus], *, skipped: bool) -> list[str]:
    """Return sentences about the problems of nodes and, with `skipped`, about the lines that the first node skipped."""
    notes = [f"the node {name}: {status.trouble}" for name, status in statuses.items() if status.trouble]
    for status in list(statuses.values())[:1] if skipped else ():
        notes += describe_skipped_lines(lines=status.lines, malformed=status.malformed, empty=status.empty)
    return notes
