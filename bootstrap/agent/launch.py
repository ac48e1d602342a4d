"""Part of one node in a launch of a run: heartbeats, decisions on attempts, the node's programs, and its status."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from bootstrap.agent import documents
from bootstrap.agent.documents import RunRequest
from bootstrap.agent.machine import Node
from bootstrap.agent.membership import ClusterView, decide
from bootstrap.agent.node_documents import Attempt, NodeStatus, RunEnd
from bootstrap.agent.node_run import NodeRun, staging
from bootstrap.agent.processes import Restarts
from bootstrap.agent.store import Document, Store
from common.errors import DataError
from trainer.output.run_files import CHECKPOINTS, SUMMARY
from trainer.rank_processes import STOP_SECONDS

_HEARD_SECONDS, _HURRIED_HEARD_SECONDS = 5.0, 1.0
"""Seconds between heartbeats, usually and while others wait: they count a node only after its heartbeat changed."""
_LOOK_SECONDS = 5.0
"""Seconds between checks of the other nodes while all of them run."""
_HURRIED_SECONDS = 60.0
"""Seconds after a new attempt during which the other nodes are assumed to wait for this one."""
_LOST_STOP_SECONDS = 5.0
"""Seconds that ranks have to stop if the attempt ended because of a lost node."""
_NEVER = float("inf")


class Launch:
    """State and actions of this node in one launch of a run."""

    def __init__(self, request: RunRequest, node: Node) -> None:
        self.request, self.ended = request, False
        self._node, self._instance, self._channel, self._clock = node, node.instance, node.channel, node.clock
        self._latest: Attempt | None = None
        self._number = 0
        """Number of the run's latest attempt, earlier launches included."""
        self._since = node.clock()
        self._run: NodeRun | None = None
        self._told: NodeStatus | None = None
        self._documents: dict[str, Document] = {}
        self._tags: dict[str, tuple[str, float, bool]] = {}
        """For each node, the tag of its heartbeat, the time at which that tag was first seen, and whether it ever
        changed."""
        self._beats, self._beaten = 0, -_NEVER
        self._looked, self._heard = -_NEVER, node.clock()
        self._failed: float | None = None
        self._looked_for_attempts = False
        self._lost: int | None = None
        """Number of an attempt for which this node has lost all its files."""
        self._leaves = ""
        self._unbrought = Restarts()
        """Restarts of the program that copies the dataset before this node takes part."""

    def reconcile(self, has_ended_others: Callable[[str | None, float], bool]) -> None:
        due = self._clock() - self._looked >= _LOOK_SECONDS or not self._is_settled
        if due:
            self._looked = self._clock()
            if self._find_latest():
                return
            self.ended = has_ended(self._channel, self.request)
            if self.ended:
                return
            self._leaves = self._notice()
            self._hear()
        own = self._latest is not None and self._instance in self._latest.instances and not self._has_lost_all()
        patience = _LOST_STOP_SECONDS if self._latest is not None and "gone" in self._latest.why else STOP_SECONDS
        name = self._latest.name if self._latest and own else self._ahead
        ended = has_ended_others(name, patience)
        if self._latest is not None and own:
            if self._run is None and ended:
                self._run = NodeRun(self.request, self._latest, self._node, self._told_of(self._latest))
            if self._run is not None:
                self._run.step(self.request, self._others(), leaves=self._leaves)
                self._tell(self._run.status)
        elif ended:
            brought = self._latest is None or self._has_brought()
            waits = NodeStatus(token=self.request.token, phase="wait" if brought else "stage", leaves=self._leaves)
            if self._unbrought.exhausted:
                waits = replace(waits, trouble=f"it cannot bring the dataset: {self._ahead}/stage.log on it says why")
            self._tell(replace(waits, address=self._node.address, gpus=self._node.gpus))
        if due:
            self._decide()

    @property
    def _ahead(self) -> str:
        """Folder of the program that copies the dataset before this node takes part."""
        return f"{self.request.token}-0"

    def _has_brought(self) -> bool:
        """Return whether the node's own disk has the dataset, or does not need it. Start the copy if not.

        The other nodes train without this one until then.
        """
        machine, processes, name = self._node.machine, self._node.processes, f"{self._ahead}/stage"
        own_disk = self.request.share is None or machine.disks is not None
        if self.request.dataset is None or not own_disk or machine.data(self.request).exists():
            return True
        state = processes.state(name)
        if state not in (None, 0, "running") and self._unbrought.again(0):
            processes.forget(name)
            state = None
        if state is None:
            folder = machine.programs / self._ahead
            program = staging(self.request, folder, self._node.store, "--ahead")
            processes.start(name, program, folder / "stage.log", {})
        return False

    @property
    def takes_part(self) -> bool:
        """True if this node is in an attempt and has not ended its part of it."""
        return not self.ended and self._run is not None and not self._run.status.over

    @property
    def hurries(self) -> bool:
        """True if other nodes wait for this node's next action."""
        return not self.ended and not self._is_settled and self._clock() - self._since < _HURRIED_SECONDS

    @property
    def _is_settled(self) -> bool:
        """True if this node's ranks train or its readers read."""
        return self._run is not None and self._run.status.phase == "run" and not self._run.status.waits

    def _has_lost_all(self) -> bool:
        """Return whether the node reported progress in the latest attempt but has no program of it: its disk is a new
        one."""
        if self._latest is None or self._run is not None or self._lost == self._latest.number:
            return self._latest is not None and self._lost == self._latest.number
        told = self._told_of(self._latest)
        began = told is not None and not told.over and told.phase not in ("wait", "stage")
        if began and not any(each.startswith(f"{self._latest.name}/") for each in self._node.processes.names()):
            self._lost = self._latest.number
        return self._lost == self._latest.number

    def _find_latest(self) -> bool:
        """Read the attempts newer than the latest known. Return whether one of them replaces the current attempt."""
        if not self._looked_for_attempts:
            keys = list(self._channel.list(documents.attempts_prefix(self.request.run)))
            self._number = max(map(documents.attempt_number, keys), default=0)
            self._looked_for_attempts = True
            if self._number:
                self._take(self._channel.read(documents.attempt_key(self.request.run, self._number)))
        before = self._latest
        while found := self._channel.read(documents.attempt_key(self.request.run, self._number + 1)):
            self._number += 1
            self._take(found)
        return self._latest is not before and before is not None

    def _take(self, document: Document | None) -> None:
        try:
            attempt = Attempt.from_json(document.text) if document else None
        except DataError as error:
            self._node.say(f"attempt {self._number} cannot be used: {error}")
            return
        if attempt is not None and (attempt.token, attempt.number) == (self.request.token, self._number):
            self._latest, self._run, self._since, self._failed = attempt, None, self._clock(), None

    def _hear(self) -> None:
        """Update the heartbeats and the changed statuses of the other nodes.

        If this node itself was stuck, the ages of the heartbeats do not count that time.
        """
        keys, now = self._channel.list(documents.NODES), self._clock()
        deaf, self._heard = max(0.0, now - self._heard - 2 * _LOOK_SECONDS), now
        self._since += deaf
        self._tags = {name: (tag, since + deaf, changed) for name, (tag, since, changed) in self._tags.items()}
        for key, (_, _, tag) in keys.items():
            instance, _, kind = key.removeprefix(documents.NODES).partition(".")
            if not documents.INSTANCE.fullmatch(instance) or instance == self._instance:
                continue
            if kind == "beat":
                known = self._tags.get(instance)
                if known is None or known[0] != tag:
                    self._tags[instance] = (tag, now, known is not None)
            elif kind == "run" and tag != getattr(self._documents.get(instance), "tag", None):
                found = self._channel.read(key)
                self._documents |= {instance: found._replace(tag=tag)} if found else {}

    def _unheard(self) -> Mapping[str, float]:
        """Return the seconds since the last heartbeat of each known node, at the time of this node's last check.

        Members of an attempt get the benefit of the attempt's age: none counts as gone before it could send a
        heartbeat.
        """
        now = self._heard
        found = {name: now - since if changed else _NEVER for name, (_, since, changed) in self._tags.items()}
        for name in self._latest.instances if self._latest else ():
            found[name] = min(found.get(name, _NEVER), now - self._since)
        return {**found, self._instance: 0.0}

    def _statuses(self) -> Mapping[str, NodeStatus]:
        token = self.request.token
        found = {name: NodeStatus.of_launch(token, document.text) for name, document in self._documents.items()}
        own = {self._instance: self._told} if self._told else {}
        return {**{name: status for name, status in found.items() if status}, **own}

    def _others(self) -> Mapping[str, NodeStatus]:
        """Return the statuses of the other members in the latest attempt."""
        assert self._latest is not None
        return {
            name: each
            for name, each in self._statuses().items()
            if name != self._instance and name in self._latest.instances and each.attempt == self._latest.number
        }

    def _decide(self) -> None:
        """Write the next attempt or the end of the run if one of them is due."""
        statuses, unheard, now = self._statuses(), self._unheard(), self._clock()
        if self._instance not in statuses:
            return
        members = self._latest.instances if self._latest else ()
        told = [each for name in members if (each := statuses.get(name)) and each.attempt == self._number]
        if any(each.fails for each in told):
            self._failed = now if self._failed is None else self._failed
        over = [each for each in told if each.over]
        may_go_on = bool(over) or any(each.leaves for each in told)
        may_go_on |= any(unheard.get(name, _NEVER) > _LOOK_SECONDS for name in members)
        may_go_on |= any((each := statuses.get(name)) is not None and each.attempt == 0 for name in members)
        view = ClusterView(
            statuses=statuses,
            unheard=unheard,
            waited=now - self._since,
            failed=now - self._failed if self._failed is not None else 0.0,
            step=self._newest_step() if may_go_on else 0,
            finished=bool(over) and self._is_finished(),
        )
        match decide(self.request, self._latest, view, number=self._number + 1):
            case Attempt() as attempt:
                if self._is_finished():
                    self._end(RunEnd(token=self.request.token, outcome="finished"))
                else:
                    self._channel.write_if(
                        documents.attempt_key(self.request.run, attempt.number), attempt.to_json(), None
                    )
            case RunEnd() as end:
                self._end(end)

    def _end(self, end: RunEnd) -> None:
        self._channel.write(self.request.end_key, end.to_json())
        self._node.say(f"the run {self.request.run} is {end.outcome} {end.error}".rstrip())

    def _is_finished(self) -> bool:
        """Return whether this launch has written a finished model, even if a node was lost afterwards."""
        if self._latest is None:
            return False
        found = self._channel.read(f"{documents.RUNS}{self.request.run}/{SUMMARY}")
        return found is not None and '"stopped": false' in found.text

    def _newest_step(self) -> int:
        folder = f"{documents.RUNS}{self.request.run}/{CHECKPOINTS}/step-"
        steps = (key.removeprefix(folder).removesuffix(".pt") for key in self._channel.list(folder))
        return max((int(each) for each in steps if each.isdecimal()), default=0)

    def _notice(self) -> str:
        """Return AWS's notice that this node will end. Without an answer, return the previous notice."""
        try:
            return self._node.notice()
        except OSError as error:
            self._node.say(f"whether AWS ends this node is unknown: {type(error).__name__}: {error}")
            return self._leaves

    def _told_of(self, attempt: Attempt) -> NodeStatus | None:
        """Return the status that this node reported for the attempt before its agent restarted."""
        document = self._channel.read(documents.status_key(self._instance))
        found = NodeStatus.of_launch(attempt.token, document and document.text)
        return found if found and found.attempt == attempt.number else None

    def _tell(self, status: NodeStatus) -> None:
        if status != self._told:
            self._channel.write(documents.status_key(self._instance), status.to_json())
            self._told = replace(status)

    def beat(self) -> None:
        """Send a heartbeat if one is due."""
        if self._clock() - self._beaten >= (_HURRIED_HEARD_SECONDS if self.hurries else _HEARD_SECONDS):
            self._beaten, self._beats = self._clock(), self._beats + 1
            self._channel.write(documents.beat_key(self._instance), f"{self._clock():.3f} {self._beats}")


def has_ended(channel: Store, request: RunRequest) -> bool:
    found = channel.read(request.end_key)
    return found is not None and RunEnd.of_launch(request.token, found.text) is not None
