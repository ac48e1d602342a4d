"""One attempt of a run on one node: its phases, from copying the data to copying the results.

`step` never blocks, because slow operations run as separate programs. A restarted agent can reconstruct the state from
the node's programs, its files and the statuses of the nodes.

If one node fails, all other nodes stop with a checkpoint. If they continued, ranks would wait forever for a lost rank,
or the model would not learn from the text of a lost reader.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bootstrap.node import documents
from bootstrap.node.assignment import STAGE, STOPPED_FROM_OUTSIDE, TRAIN, Assignment
from bootstrap.node.node_documents import Member, NodeStatus
from bootstrap.node.programs import ReaderPrograms, rank_arguments, rank_environment
from bootstrap.node.progress import RecordedProgress
from bootstrap.node.staging import begin_staging, staging_progress
from bootstrap.node.uploads import Results
from common import names
from common.errors import DataError, TrainingError
from trainer.output.run_files import CHECKPOINTS, SUMMARY, read_json
from trainer.rank_processes import STOP_SECONDS

_PROGRESS_SECONDS = 30.0

Statuses = Mapping[str, NodeStatus]
"""Statuses of an attempt's other nodes, by instance id. A node that has not reported a status is missing."""


class NodeRun:
    def __init__(self, assignment: Assignment, reported: NodeStatus | None) -> None:
        """`reported` is the status that an earlier agent reported for the same attempt."""
        attempt, me = assignment.attempt, assignment.me
        self.attempt = attempt
        self._assignment, self._node, self._me = assignment, assignment.node, me
        self._results, self._readers = Results(assignment), ReaderPrograms(assignment)
        self._progress = RecordedProgress(assignment.folder, self._node.clock)
        self._progress_reported = -_PROGRESS_SECONDS
        self._others = [each for each in attempt.members if each != me]
        self._stop_requested = False
        self._end_started: float | None = None
        self.status = reported or NodeStatus(
            token=attempt.token, phase="stage", attempt=attempt.number, address=me.address, gpus=me.gpus
        )

    def step(self, statuses: Statuses, *, stop: bool, leaves: str) -> None:
        """Advance the current phase as far as possible without blocking.

        With `stop`, the request asks all nodes to stop. `leaves` is as in `NodeStatus.leaves`.
        """
        self._stop_requested = stop
        self._report(leaves=leaves)
        phases = {"stage": self._stage, "staged": self._wait_for_others, "run": self._watch, "end": self._end}
        try:
            if advance := phases.get(self.status.phase):
                advance(statuses)
        except (DataError, TrainingError, OSError) as error:
            self._fail(str(error))

    def _stage(self, statuses: Statuses) -> None:
        state, must_stop = self._assignment.state(STAGE), self._must_stop(statuses)
        if state is not None:
            self._report(**staging_progress(self._assignment))
        if state == "running":
            if must_stop:
                self._assignment.stop(STAGE)
        elif state == 0:
            self._report(phase="staged")
        elif must_stop:
            self._report(phase="end")
        elif state is None:
            first_is_staged = _have_reached(statuses, self.attempt.members[:1], "staged")
            if begin_staging(self._assignment, self._results, first_is_staged=first_is_staged):
                self._report(phase="staged")
        elif state in STOPPED_FROM_OUTSIDE:
            self._report(phase="end", lost=True)
        else:
            raise DataError(self._assignment.last_line(STAGE))

    def _wait_for_others(self, statuses: Statuses) -> None:
        """Start the ranks and readers once all nodes have their data."""
        if self._must_stop(statuses):
            self._report(phase="end")
        elif _have_reached(statuses, self._others, "staged"):
            for folder in (self._assignment.folder, self._node.machine.logs(self._assignment.request)):
                folder.mkdir(parents=True, exist_ok=True)
            if self._me.gpus and self._assignment.state(TRAIN) is None:
                self._assignment.start(TRAIN, rank_arguments(self._assignment), rank_environment(self._assignment))
            self._readers.start()
            self._report(phase="run")

    def _watch(self, statuses: Statuses) -> None:
        """Check whether ranks and readers still run. Readers are asked to stop once all ranks have exited, because a
        stream can be endless."""
        self._results.copy_regularly()
        self._report_progress()
        trains = bool(self._me.gpus) and self._check_ranks(statuses)
        other_trainers = [each for each in self._others if each.gpus]
        ranks_ended = not trains and _have_reached(statuses, other_trainers, "end", or_failed=True)
        reads = self._readers.check(stop=ranks_ended or self.status.fails)
        if not trains and not reads and (ranks_ended or self._me.gpus):
            self._report(phase="end")

    def _end(self, statuses: Statuses) -> None:
        """Copy the results. After a finished run, the first node also removes the files that are no longer needed."""
        assignment, request = self._assignment, self._assignment.request
        finished = assignment.is_first and (read_json(assignment.folder / SUMMARY) or {}).get("stopped") is False
        if finished and request.stream is not None and not self._have_readers_ended(statuses):
            return
        if not self._results.is_copied(finished=finished):
            return
        if finished:
            for key in self._node.channel.list(f"{names.RUNS}{request.run}/{CHECKPOINTS}/"):
                self._node.channel.remove(key)
            if request.stream is not None:
                shutil.rmtree(assignment.data, ignore_errors=True)
        self._report(phase="failed" if self.status.fails else "done")

    def _have_readers_ended(self, statuses: Statuses) -> bool:
        """Return whether all readers have ended or have had enough time to end. The caller then removes the readers'
        files."""
        now = self._node.clock()
        self._end_started = now if self._end_started is None else self._end_started
        readers = [each for each in self.attempt.members if not each.gpus]
        return now - self._end_started > 2 * STOP_SECONDS or _have_reached(statuses, readers, "done", or_failed=True)

    def _check_ranks(self, statuses: Statuses) -> bool:
        """Return whether this node's ranks are still running. If this node must stop, ask its ranks to stop."""
        state, must_stop = self._assignment.state(TRAIN), self._must_stop(statuses)
        if state == "running":
            self._report(waits=self._assignment.meeting_file.exists())
            if must_stop:
                self._assignment.stop(TRAIN)
            return True
        if state in STOPPED_FROM_OUTSIDE and not self._assignment.was_asked_to_stop(TRAIN) and not self._stop_requested:
            self._report(lost=True)  # even if ranks of other nodes failed as a consequence
        elif isinstance(state, int) and state and not must_stop:
            self._report(ranks=state)
        return False

    def _report_progress(self) -> None:
        """Report the progress of the ranks, at most every 30 seconds, because each changed status costs one write to
        the store."""
        if self._me.gpus and self._node.clock() - self._progress_reported >= _PROGRESS_SECONDS:
            self._progress_reported = self._node.clock()
            if self._assignment.is_first:  # the shared folder can hang on other nodes
                self._progress.update()
            progress, machine = self._progress, self._node.machine
            trouble = "; ".join(filter(None, (machine.full_disk(), progress.hung)))
            self._report(starts=progress.attempt, gpu_use=machine.gpu_use(), trouble=trouble)
            self._report(step=progress.step, steps=progress.steps, ends=progress.ends)

    def _must_stop(self, statuses: Statuses) -> bool:
        """Return whether this node must stop: on request, because a node failed, or because a node is about to
        terminate."""
        every = (self.status, *statuses.values())
        return self._stop_requested or any(each.fails or each.leaves for each in every)

    def _report(self, **changes: object) -> None:
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]

    def _fail(self, error: str) -> None:
        self._report(error=error[: documents.MAX_ERROR_LENGTH])
        if self.status.phase != "run":  # in phase `run`, ranks and readers are asked to stop first
            self._report(phase="failed" if self.status.phase == "end" else "end")


def _have_reached(statuses: Statuses, members: Sequence[Member], phase: str, *, or_failed: bool = False) -> bool:
    """Return whether all members have reached a phase. With `or_failed`, nodes that failed count, too."""
    known = [statuses.get(each.instance) for each in members]
    return all(
        each is not None and ((or_failed and each.phase == "failed") or each.has_reached(phase)) for each in known
    )
