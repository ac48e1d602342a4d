"""Attempts and other nodes of a launch, as this node knows them from the store."""

from collections.abc import Collection, Mapping

from bootstrap.node.documents import RunRequest
from bootstrap.node.machine import Node
from bootstrap.node.node_documents import Attempt, NodeStatus
from common import names
from common.errors import DataError

CHECK_SECONDS = 5.0
"""Usual seconds between two calls of `read`."""
_NEVER = float("inf")


class Attempts:
    """Attempts of a run. Only those of one launch count."""

    def __init__(self, request: RunRequest, node: Node) -> None:
        self._request, self._node, self._channel = request, node, node.channel
        self._latest: Attempt | None = None
        self._number: int | None = None

    @property
    def number(self) -> int:
        """Number of the run's latest attempt, counted over all launches of the run."""
        return self._number or 0

    def read(self) -> Attempt | None:
        """Read all attempts that are newer than the latest known attempt, and return the latest attempt of this
        launch."""
        if self._number is None:
            keys = self._channel.list(names.attempts_prefix(self._request.run))
            self._number = max(0, max(map(names.attempt_number, keys), default=0) - 1)
        while document := self._channel.read(names.attempt_key(self._request.run, self._number + 1)):
            self._number += 1
            try:
                attempt = Attempt.from_json(document.text)
            except DataError as error:
                self._node.say(f"this node cannot read attempt {self._number}: {error}")
                continue
            if (attempt.token, attempt.number) == (self._request.token, self._number):
                self._latest = attempt
        return self._latest

    def propose(self, attempt: Attempt) -> None:
        """Write the next attempt, unless another node has written it already."""
        self._channel.write_if(names.attempt_key(self._request.run, attempt.number), attempt.to_json(), None)


class Peers:
    """Heartbeats and statuses of the other nodes of a launch."""

    def __init__(self, token: str, node: Node) -> None:
        self._token, self._instance, self._channel, self._clock = token, node.member.instance, node.channel, node.clock
        self.statuses: Mapping[str, NodeStatus] = {}
        """Latest status of each node that reported one for this launch, by instance id."""
        self._tags: dict[str, str] = {}
        """Tag that each document had when it was last read, by key."""
        self._heartbeats: dict[str, float] = {}
        """Time of each node's last heartbeat, by instance id. A node counts as alive only after its heartbeat has
        changed, so the first heartbeat that this node reads has an infinite age."""
        self._stuck = 0.0
        self._last_read = node.clock()

    def time(self) -> float:
        """Return the time in seconds without periods in which this node could not read the store. Other nodes do not
        seem to be gone after such a period."""
        return self._clock() - self._stuck

    def read(self) -> None:
        """Read the heartbeats and the changed statuses of the other nodes."""
        keys = self._channel.list(names.NODES)
        self._stuck += max(0.0, self._clock() - self._last_read - 2 * CHECK_SECONDS)
        self._last_read = self._clock()
        for key, (_, _, tag) in keys.items():
            instance, _, kind = key.removeprefix(names.NODES).partition(".")
            if not names.INSTANCE.fullmatch(instance) or instance == self._instance or self._tags.get(key) == tag:
                continue
            if kind == "beat":
                self._heartbeats[instance] = self.time() if key in self._tags else -_NEVER
                self._tags[key] = tag
            elif kind == "run" and (document := self._channel.read(key)):
                status = NodeStatus.of_launch(self._token, document.text)
                others = {name: each for name, each in self.statuses.items() if name != instance}
                self.statuses = {**others, instance: status} if status else others
                self._tags[key] = tag

    def seconds_since_heartbeat(self, members: Collection[str], since: float) -> Mapping[str, float]:
        """Return the seconds from the last heartbeat of each known node to the last call of `read`.

        For the `members` of an attempt, the value is at most the age of the attempt, which began at the time `since`. A
        member is thus not considered gone before it could send a heartbeat.
        """
        now = self._last_read - self._stuck
        last = {**self._heartbeats, **{name: max(self._heartbeats.get(name, since), since) for name in members}}
        return {**{name: now - heartbeat for name, heartbeat in last.items()}, self._instance: 0.0}
