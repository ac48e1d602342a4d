"""Actions of one node in a launch of a run: it sends heartbeats, decides on attempts, runs its programs and reports its
status."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from bootstrap.node.documents import RunRequest
from bootstrap.node.machine import Node
from bootstrap.node.membership import ClusterView, decide
from bootstrap.node.node_documents import Attempt, NodeStatus, RunEnd
from bootstrap.node.node_run import NodeRun, stage_arguments
from bootstrap.node.processes import Restarts
from bootstrap.node.store import Store, StoredDocument
from common import names
from common.errors import DataError
from trainer.output.run_files import CHECKPOINTS, SUMMARY
from trainer.rank_processes import STOP_SECONDS

_HEARTBEAT_SECONDS, _URGENT_HEARTBEAT_SECONDS = 5.0, 1.0
"""Seconds between heartbeats: usually, and while other nodes wait for this node. Those nodes consider a node alive only
after they have seen its heartbeat change."""
_CHECK_SECONDS = 5.0
"""Seconds between checks of the other nodes while this node's ranks or readers run."""
_URGENT_SECONDS = 60.0
"""Seconds after a new attempt during which the other nodes are assumed to wait for this node."""
_STOP_AFTER_LOSS_SECONDS = 5.0
"""Seconds within which ranks must stop if the attempt ended because of a lost node."""
_NEVER = float("inf")


class Participation:
    """Participation of this node in one launch of a run."""

    def __init__(self, request: RunRequest, node: Node) -> None:
        self.request, self.ended = request, False
        self._node, self._instance, self._channel, self._clock = node, node.instance, node.channel, node.clock
        self._latest: Attempt | None = None
        self._number = 0
        """Number of the run's latest attempt, counted over all launches of the run."""
        self._since = node.clock()
        self._run: NodeRun | None = None
        self._reported: NodeStatus | None = None
        self._documents: dict[str, StoredDocument] = {}
        self._tags: dict[str, tuple[str, float, bool]] = {}
        """For each node: the tag of its heartbeat, the time when this tag was first seen, and whether the tag has ever
        changed."""
        self._heartbeats, self._last_heartbeat = 0, -_NEVER
        self._last_check, self._last_read = -_NEVER, node.clock()
        self._failed: float | None = None
        self._listed_attempts = False
        self._lost_attempt: int | None = None
        """Number of an attempt, if this node has lost all files of that attempt."""
        self._leaves = ""
        self._copy_restarts = Restarts()
        """Restarts of the program that copies the dataset before this node joins an attempt."""

    def reconcile(self, stop_others: Callable[[str | None, float], bool]) -> None:
        due = self._clock() - self._last_check >= _CHECK_SECONDS or not self._is_settled
        if due:
            self._last_check = self._clock()
            if self._find_latest():
                return
            self.ended = has_ended(self._channel, self.request)
            if self.ended:
                return
            self._leaves = self._notice()
            self._read_nodes()
        is_member = self._latest is not None and self._instance in self._latest.instances and not self._has_lost_files()
        patience = _STOP_AFTER_LOSS_SECONDS if self._latest is not None and "gone" in self._latest.why else STOP_SECONDS
        name = self._latest.name if self._latest and is_member else self._early_programs
        ended = stop_others(name, patience)
        if self._latest is not None and is_member:
            if self._run is None and ended:
                self._run = NodeRun(self.request, self._latest, self._node, self._reported_for(self._latest))
            if self._run is not None:
                self._run.step(self.request, self._others(), leaves=self._leaves)
                self._report(self._run.status)
        elif ended:
            has_dataset = self._latest is None or self._has_dataset()
            waiting = NodeStatus(
                token=self.request.token, phase="wait" if has_dataset else "stage", leaves=self._leaves
            )
            if self._copy_restarts.exhausted:
                waiting = replace(
                    waiting, trouble=f"it cannot copy the dataset; see {self._early_programs}/stage.log on the node"
                )
            self._report(replace(waiting, address=self._node.address, gpus=self._node.gpus))
        if due:
            self._decide()

    @property
    def _early_programs(self) -> str:
        """Folder of the program that copies the dataset before this node joins an attempt."""
        return f"{self.request.token}-0"

    def _has_dataset(self) -> bool:
        """Return whether the dataset is on the node's own disk, or is not needed there. If the dataset is missing,
        start to copy it.

        The other nodes train without this node until the copy is complete.
        """
        machine, processes, name = self._node.machine, self._node.processes, f"{self._early_programs}/stage"
        own_disk = self.request.share is None or machine.disks is not None
        if self.request.dataset is None or not own_disk or machine.data(self.request).exists():
            return True
        state = processes.state(name)
        if state not in (None, 0, "running") and self._copy_restarts.may_restart(0):
            processes.forget(name)
            state = None
        if state is None:
            folder = machine.programs / self._early_programs
            program = stage_arguments(self.request, folder, self._node.store, "--ahead")
            processes.start(name, program, folder / "stage.log", {})
        return False

    @property
    def takes_part(self) -> bool:
        """True if this node is a member of an attempt and has not finished its work for that attempt."""
        return not self.ended and self._run is not None and not self._run.status.over

    @property
    def is_urgent(self) -> bool:
        """True if other nodes wait for this node's next action."""
        return not self.ended and not self._is_settled and self._clock() - self._since < _URGENT_SECONDS

    @property
    def _is_settled(self) -> bool:
        """True if this node's ranks are training or its readers are reading, and no rank waits for a lost rank."""
        return self._run is not None and self._run.status.phase == "run" and not self._run.status.waits

    def _has_lost_files(self) -> bool:
        """Return whether this node has lost the files of the latest attempt.

        If the node reported progress in that attempt, but the attempt's programs are missing, the node has a new disk
        and its files are lost.
        """
        if self._latest is None or self._run is not None or self._lost_attempt == self._latest.number:
            return self._latest is not None and self._lost_attempt == self._latest.number
        reported = self._reported_for(self._latest)
        had_started = reported is not None and not reported.over and reported.phase not in ("wait", "stage")
        if had_started and not any(each.startswith(f"{self._latest.name}/") for each in self._node.processes.names()):
            self._lost_attempt = self._latest.number
        return self._lost_attempt == self._latest.number

    def _find_latest(self) -> bool:
        """Read all attempts that are newer than the latest known attempt. Return whether one of them replaces a known
        attempt."""
        if not self._listed_attempts:
            keys = list(self._channel.list(names.attempts_prefix(self.request.run)))
            self._number = max(map(names.attempt_number, keys), default=0)
            self._listed_attempts = True
            if self._number:
                self._take(self._channel.read(names.attempt_key(self.request.run, self._number)))
        before = self._latest
        while document := self._channel.read(names.attempt_key(self.request.run, self._number + 1)):
            self._number += 1
            self._take(document)
        return self._latest is not before and before is not None

    def _take(self, document: StoredDocument | None) -> None:
        try:
            attempt = Attempt.from_json(document.text) if document else None
        except DataError as error:
            self._node.say(f"this node cannot read attempt {self._number}: {error}")
            return
        if attempt is not None and (attempt.token, attempt.number) == (self.request.token, self._number):
            self._latest, self._run, self._since, self._failed = attempt, None, self._clock(), None

    def _read_nodes(self) -> None:
        """Update the heartbeats and the changed statuses of the other nodes.

        Time during which this node itself was stuck is not added to the ages of the heartbeats.
        """
        keys, now = self._channel.list(names.NODES), self._clock()
        stuck, self._last_read = max(0.0, now - self._last_read - 2 * _CHECK_SECONDS), now
        self._since += stuck
        self._tags = {name: (tag, since + stuck, changed) for name, (tag, since, changed) in self._tags.items()}
        for key, (_, _, tag) in keys.items():
            instance, _, kind = key.removeprefix(names.NODES).partition(".")
            if not names.INSTANCE.fullmatch(instance) or instance == self._instance:
                continue
            if kind == "beat":
                known = self._tags.get(instance)
                if known is None or known[0] != tag:
                    self._tags[instance] = (tag, now, known is not None)
            elif kind == "run" and tag != getattr(self._documents.get(instance), "tag", None):
                document = self._channel.read(key)
                self._documents |= {instance: document._replace(tag=tag)} if document else {}

    def _seconds_since_heartbeat(self) -> Mapping[str, float]:
        """Return the seconds from the last heartbeat of each known node to this node's last check.

        For a member of the latest attempt, the value is at most the age of the attempt. A member is thus not considered
        gone before it could send a heartbeat.
        """
        now = self._last_read
        ages = {name: now - since if changed else _NEVER for name, (_, since, changed) in self._tags.items()}
        for name in self._latest.instances if self._latest else ():
            ages[name] = min(ages.get(name, _NEVER), now - self._since)
        return {**ages, self._instance: 0.0}

    def _statuses(self) -> Mapping[str, NodeStatus]:
        token = self.request.token
        statuses = {name: NodeStatus.of_launch(token, document.text) for name, document in self._documents.items()}
        reported = {self._instance: self._reported} if self._reported else {}
        return {**{name: status for name, status in statuses.items() if status}, **reported}

    def _others(self) -> Mapping[str, NodeStatus]:
        """Return the statuses that the other members reported for the latest attempt."""
        assert self._latest is not None
        return {
            name: each
            for name, each in self._statuses().items()
            if name != self._instance and name in self._latest.instances and each.attempt == self._latest.number
        }

    def _decide(self) -> None:
        """Decide whether the next attempt or the end of the run is due, and write it."""
        statuses, seconds_since_heartbeat, now = self._statuses(), self._seconds_since_heartbeat(), self._clock()
        if self._instance not in statuses:
            return
        members = self._latest.instances if self._latest else ()
        reported = [each for name in members if (each := statuses.get(name)) and each.attempt == self._number]
        if any(each.fails for each in reported):
            self._failed = now if self._failed is None else self._failed
        over = [each for each in reported if each.over]
        may_change = bool(over) or any(each.leaves for each in reported)
        may_change |= any(seconds_since_heartbeat.get(name, _NEVER) > _CHECK_SECONDS for name in members)
        may_change |= any((each := statuses.get(name)) is not None and each.attempt == 0 for name in members)
        view = ClusterView(
            statuses=statuses,
            seconds_since_heartbeat=seconds_since_heartbeat,
            waited=now - self._since,
            failed=now - self._failed if self._failed is not None else 0.0,
            step=self._newest_step() if may_change else 0,
            finished=bool(over) and self._is_finished(),
        )
        match decide(self.request, self._latest, view, number=self._number + 1):
            case Attempt() as attempt:
                if self._is_finished():
                    self._end(RunEnd(token=self.request.token, outcome="finished"))
                else:
                    self._channel.write_if(names.attempt_key(self.request.run, attempt.number), attempt.to_json(), None)
            case RunEnd() as end:
                self._end(end)

    def _end(self, end: RunEnd) -> None:
        self._channel.write(self.request.end_key, end.to_json())
        self._node.say(f"the run {self.request.run} is {end.outcome} {end.error}".rstrip())

    def _is_finished(self) -> bool:
        """Return whether this launch has written its finished model, even if a node was lost afterwards."""
        if self._latest is None:
            return False
        summary = self._channel.read(f"{names.RUNS}{self.request.run}/{SUMMARY}")
        return summary is not None and '"stopped": false' in summary.text

    def _newest_step(self) -> int:
        folder = f"{names.RUNS}{self.request.run}/{CHECKPOINTS}/step-"
        steps = (key.removeprefix(folder).removesuffix(".pt") for key in self._channel.list(folder))
        return max((int(each) for each in steps if each.isdecimal()), default=0)

    def _notice(self) -> str:
        """Return AWS's notice that this node will be terminated. If AWS does not answer, return the previous notice."""
        try:
            return self._node.notice()
        except OSError as error:
            self._node.say(f"this node cannot read AWS's notices: {type(error).__name__}: {error}")
            return self._leaves

    def _reported_for(self, attempt: Attempt) -> NodeStatus | None:
        """Return the status that this node reported for the attempt before its agent restarted."""
        document = self._channel.read(names.status_key(self._instance))
        status = NodeStatus.of_launch(attempt.token, document and document.text)
        return status if status and status.attempt == attempt.number else None

    def _report(self, status: NodeStatus) -> None:
        if status != self._reported:
            self._channel.write(names.status_key(self._instance), status.to_json())
            self._reported = replace(status)

    def heartbeat(self) -> None:
        """Send a heartbeat if one is due."""
        if self._clock() - self._last_heartbeat >= (
            _URGENT_HEARTBEAT_SECONDS if self.is_urgent else _HEARTBEAT_SECONDS
        ):
            self._last_heartbeat, self._heartbeats = self._clock(), self._heartbeats + 1
            self._channel.write(names.heartbeat_key(self._instance), f"{self._clock():.3f} {self._heartbeats}")


def has_ended(channel: Store, request: RunRequest) -> bool:
    document = channel.read(request.end_key)
    return document is not None and RunEnd.of_launch(request.token, document.text) is not None
