"""Attempts of a run, as this node reads them from the store."""

from bootstrap.node.documents import RunRequest
from bootstrap.node.machine import Node
from bootstrap.node.node_documents import Attempt
from common import names
from common.errors import DataError


class Attempts:
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
