"""Actions of one node in a launch of a run: it sends heartbeats, decides on attempts, runs its programs and reports its
status."""

from bootstrap.node.assignment import Assignment, Supervisor
from bootstrap.node.documents import RunRequest
from bootstrap.node.machine import Node
from bootstrap.node.membership import ClusterView, decide, statuses_of
from bootstrap.node.node_documents import Attempt, NodeStatus, RunEnd
from bootstrap.node.node_run import NodeRun
from bootstrap.node.peers import CHECK_SECONDS, Attempts, Peers
from bootstrap.node.staging import EarlyStaging
from common import names
from trainer.output.run_files import CHECKPOINTS, SUMMARY
from trainer.rank_processes import STOP_SECONDS

_HEARTBEAT_SECONDS, _URGENT_HEARTBEAT_SECONDS = 5.0, 1.0
"""Seconds between heartbeats: usually, and while other nodes wait for this node. Those nodes consider a node alive only
after they have seen its heartbeat change."""
_URGENT_SECONDS = 60.0
"""Seconds after a new attempt during which the other nodes are assumed to wait for this node."""
_STOP_AFTER_LOSS_SECONDS = 5.0
"""Seconds within which ranks must stop if the attempt ended because of a lost node."""
_NEVER = float("inf")


class Participation:
    """Participation of this node in one launch of a run."""

    def __init__(self, request: RunRequest, node: Node, supervisor: Supervisor) -> None:
        self.request, self.ended = request, False
        self._node, self._channel, self._clock, self._supervisor = node, node.channel, node.clock, supervisor
        self._me = node.member
        self._attempts, self._peers = Attempts(request, node), Peers(request.token, node)
        self._early = EarlyStaging(request, node)
        self._attempt: Attempt | None = None
        """Latest attempt."""
        self._run: NodeRun | None = None
        """This node's work for the latest attempt. None if this node is no member or has lost its files."""
        self._since = self._peers.time()
        """Time at which this node first read the latest attempt, or the launch if there is no attempt yet."""
        self._failed_since: float | None = None
        """Time at which this node first read that a node of the latest attempt failed."""
        self._reported: NodeStatus | None = None
        self._heartbeats, self._last_heartbeat = 0, -_NEVER
        self._last_check = -_NEVER
        self._leaves = ""

    def reconcile(self) -> None:
        """Do what the request and the latest attempt ask of this node. While the ranks or readers of this node run, the
        other nodes are checked only every few seconds."""
        due = self._clock() - self._last_check >= CHECK_SECONDS or not self._is_settled
        if due:
            self._last_check = self._clock()
            self.ended = self._has_ended()
            if self.ended:
                return
            self._read()
        attempt, run = self._attempt, self._run
        patience = _STOP_AFTER_LOSS_SECONDS if attempt is not None and "gone" in attempt.why else STOP_SECONDS
        if run is None:
            if self._supervisor.stop_others(self._early.folder, patience):
                self._report(self._waiting_status())
        elif self._supervisor.stop_others(run.attempt.name, patience):
            run.step(statuses_of(run.attempt, self._peers.statuses), stop=self.request.stop, leaves=self._leaves)
            self._report(run.status)
        if due:
            self._decide()

    @property
    def takes_part(self) -> bool:
        """True if this node is a member of an attempt and has not finished its work for that attempt."""
        return self._run is not None and not self._run.status.over

    @property
    def is_urgent(self) -> bool:
        """True if other nodes wait for this node's next action."""
        return not self._is_settled and self._peers.time() - self._since < _URGENT_SECONDS

    def heartbeat(self) -> None:
        """Send a heartbeat if one is due."""
        pause = _URGENT_HEARTBEAT_SECONDS if self.is_urgent else _HEARTBEAT_SECONDS
        if self._clock() - self._last_heartbeat >= pause:
            self._last_heartbeat, self._heartbeats = self._clock(), self._heartbeats + 1
            text = f"{self._clock():.3f} {self._heartbeats}"
            self._channel.write(names.heartbeat_key(self._me.instance), text)

    @property
    def _is_settled(self) -> bool:
        """True if this node's ranks are training or its readers are reading, and no rank waits for a lost rank."""
        return self._run is not None and self._run.status.phase == "run" and not self._run.status.waits

    def _has_ended(self) -> bool:
        end = self._channel.read(self.request.end_key)
        return end is not None and RunEnd.of_launch(self.request.token, end.text) is not None

    def _read(self) -> None:
        """Read the heartbeats and statuses of the other nodes, new attempts, and the notices of AWS."""
        self._peers.read()
        latest = self._attempts.read()
        if latest is not None and latest is not self._attempt:
            self._run, self._attempt = self._work_for(latest), latest
            self._since, self._failed_since = self._peers.time(), None
        try:
            self._leaves = self._node.notice()
        except OSError as error:  # the previous notice still holds
            self._node.say(f"this node cannot read AWS's notices: {type(error).__name__}: {error}")

    def _work_for(self, attempt: Attempt) -> NodeRun | None:
        """Return this node's work for an attempt, or None if this node is no member or has lost its files.

        If the node reported progress in that attempt, but the attempt's programs are missing, the node has a new disk
        and its files are lost.
        """
        if self._me.instance not in attempt.instances:
            return None
        document = self._channel.read(names.status_key(self._me.instance))
        status = NodeStatus.of_launch(attempt.token, document and document.text)
        if status is not None and status.attempt != attempt.number:
            status = None
        had_started = status is not None and not status.over and status.phase not in ("wait", "stage")
        programs = [name for name in self._node.processes.names() if name.startswith(f"{attempt.name}/")]
        if had_started and not programs:
            return None
        assignment = Assignment(request=self.request, attempt=attempt, node=self._node, supervisor=self._supervisor)
        return NodeRun(assignment, status)

    def _waiting_status(self) -> NodeStatus:
        """Return the status of this node while it waits for an attempt."""
        has_dataset = self._attempt is None or self._early.has_dataset()
        return NodeStatus(
            token=self.request.token,
            phase="wait" if has_dataset else "stage",
            address=self._me.address,
            gpus=self._me.gpus,
            leaves=self._leaves,
            trouble=self._early.trouble,
        )

    def _report(self, status: NodeStatus) -> None:
        if status != self._reported:
            self._channel.write(names.status_key(self._me.instance), status.to_json())
            self._reported = status

    def _decide(self) -> None:
        """Decide whether the next attempt or the end of the run is due, and write it."""
        if self._reported is None:
            return
        latest, now = self._attempt, self._peers.time()
        statuses = {**self._peers.statuses, self._me.instance: self._reported}
        members, reported = (latest.instances, statuses_of(latest, statuses)) if latest is not None else ((), {})
        if self._failed_since is None and any(each.fails for each in reported.values()):
            self._failed_since = now
        view = ClusterView(
            statuses=statuses,
            seconds_since_heartbeat=self._peers.seconds_since_heartbeat(members, self._since),
            waited=now - self._since,
            failed=now - self._failed_since if self._failed_since is not None else 0.0,
            newest_step=self._newest_step,
            has_finished=self._has_finished,
        )
        decision = decide(self.request, latest, view, number=self._attempts.number + 1)
        if isinstance(decision, Attempt):
            self._attempts.propose(decision)
        elif decision is not None:
            self._channel.write(self.request.end_key, decision.to_json())
            self._node.say(f"the run {self.request.run} is {decision.outcome} {decision.error}".rstrip())

    def _has_finished(self) -> bool:
        """Return whether this launch has written its finished model, even if a node was lost afterwards."""
        summary = self._channel.read(f"{names.RUNS}{self.request.run}/{SUMMARY}")
        return summary is not None and '"stopped": false' in summary.text

    def _newest_step(self) -> int:
        """Return the step of the newest checkpoint in the store, or 0 without a checkpoint."""
        folder = f"{names.RUNS}{self.request.run}/{CHECKPOINTS}/step-"
        steps = (key.removeprefix(folder).removesuffix(".pt") for key in self._channel.list(folder))
        return max((int(each) for each in steps if each.isdecimal()), default=0)
