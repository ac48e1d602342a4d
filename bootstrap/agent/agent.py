"""The agent of a node: looks what is wanted, does what can be done for it, and tells what is.

It holds nothing that it could not find again: whoever ends it, also during a run, loses nothing.
"""

import json
from dataclasses import replace

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.agent import documents
from bootstrap.agent.channel import Document
from bootstrap.agent.documents import NodeStatus, RunRequest
from bootstrap.agent.node_run import Node, NodeRun
from common.errors import DataError
from trainer.rank_processes import STOP_SECONDS

BEAT_SECONDS = 60.0
"""How often a node that works says so; the guard ends one that has not for a while."""
_LOOK_SECONDS = 5.0
"""How often a node looks at the others while all of them run."""
_UNANSWERED = (Boto3Error, BotoCoreError, ClientError, OSError)


class Agent:
    """The agent of a deployment's node."""

    def __init__(self, deployment: str, node: Node, *, beat_seconds: float = BEAT_SECONDS) -> None:
        self._key, self._node, self._say = documents.request_key(deployment), node, node.say
        self._instance, self._channel, self._clock = node.instance, node.channel, node.clock
        clock = node.clock
        self._beat_seconds, self._beaten = beat_seconds, clock() - beat_seconds
        self._document: Document | None = None
        self._request: RunRequest | None = None
        self._run: NodeRun | None = None
        self._told: NodeStatus | None = None
        self._others: dict[str, Document] = {}
        self._looked = clock() - _LOOK_SECONDS
        self._ending: dict[str, float] = {}

    def tick(self) -> None:
        """Do what can be done now. What S3 does not answer is asked again the next time."""
        try:
            self._look()
            if self._run is not None and self._request is not None:
                self._run.step(self._request, self._statuses())
                self._tell(self._run.status)
        except _UNANSWERED as error:
            self._say(f"{type(error).__name__}: {error}")
        self._beat()

    @property
    def busy(self) -> bool:
        """Whether there is something to do."""
        return self._run is not None and not self._run.status.over

    def _look(self) -> None:
        """Read what is wanted; end the programs of anything else."""
        found = self._channel.read(self._key, self._document)
        if found is not self._document:
            self._document = found
            self._request = self._read(found) if found else None
        wanted = self._request
        members = [each.instance for each in wanted.members] if wanted else []
        token = wanted.token if wanted and self._instance in members else None
        if self._run is not None and self._run.token != token:
            self._run, self._told, self._others = None, None, {}
        if self._has_ended_others(token) and self._run is None and wanted is not None and token is not None:
            self._told = self._told_before(wanted)
            self._run = NodeRun(wanted, self._node, self._told)

    def _read(self, document: Document) -> RunRequest | None:
        """The request; None, and a status that says why, where it cannot be used."""
        try:
            return RunRequest.from_json(document.text)
        except DataError as error:
            why = f"the request to the nodes cannot be used: {error}"
            self._say(why)
            if token := documents.token_in(document.text):
                status = NodeStatus(token=token, phase="failed", error=why[: documents.MOST_ERROR])
                self._channel.write(documents.status_key(self._instance), status.to_json())
            return None

    def _told_before(self, request: RunRequest) -> NodeStatus | None:
        """What this node has told of the same launch."""
        found = self._channel.read(documents.status_key(self._instance))
        return _status(found, request.token) if found else None

    def _has_ended_others(self, token: str | None) -> bool:
        """Whether no program runs but those of this launch; others are asked to stop."""
        ended = True
        for name in self._node.processes.names():
            if name.partition("/")[0] != token and self._node.processes.state(name) == "running":
                ended = False
                since = self._ending.setdefault(name, self._clock())
                self._node.processes.stop(name, kill=self._clock() - since > 2 * STOP_SECONDS)
        return ended

    def _statuses(self) -> dict[str, NodeStatus]:
        """What the other nodes have told of this launch."""
        assert self._run is not None
        assert self._request is not None
        waits = self._run.status.phase != "run"
        if waits or self._clock() - self._looked >= _LOOK_SECONDS:
            self._looked = self._clock()
            for each in self._request.members:
                if each.instance != self._instance and not self._run.status.over:
                    key = documents.status_key(each.instance)
                    if found := self._channel.read(key, self._others.get(each.instance)):
                        self._others[each.instance] = found
        known = {name: _status(document, self._request.token) for name, document in self._others.items()}
        return {name: status for name, status in known.items() if status}

    def _tell(self, status: NodeStatus) -> None:
        if status != self._told:
            self._channel.write(documents.status_key(self._instance), status.to_json())
            self._told = replace(status)

    def _beat(self) -> None:
        """Say that this node works, if it does, also for somebody else."""
        if self._clock() - self._beaten < self._beat_seconds:
            return
        self._beaten = self._clock()
        if self.busy or self._node.machine.uses_gpus():
            try:
                self._channel.write(f"{documents.NODES}{self._instance}.busy", json.dumps({"busy": True}))
            except _UNANSWERED as error:
                self._say(f"{type(error).__name__}: {error}")


def _status(document: Document, token: str) -> NodeStatus | None:
    """A node's status; None for one of another launch, and for what is none: others may write there, too."""
    try:
        found = NodeStatus.from_json(document.text)
    except DataError:
        return None
    return found if found.token == token else None
