"""A launch of a run, wherever its agents are: what they are asked to do, and what they tell of it.

All of it are documents in a store, which is all that a command and the agents have in common.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from bootstrap.agent import documents
from bootstrap.agent.documents import RequestQueue, RunRequest
from bootstrap.agent.node_documents import Attempt, NodeStatus, RunEnd
from bootstrap.agent.store import Document, Store
from bootstrap.aws import names
from common.errors import DataError, ShoalError

_CHANGES_AT_ONCE = 20
"""How often a change of the requests is tried again that others have changed meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a command wants of its launch."""

    queue: bool = False
    """Whether it may wait for the runs that were wanted before."""
    keep: bool = False
    """Whether the nodes stay when it has ended."""
    min_nodes: int = 1
    """The fewest nodes that train, where some are lost."""
    replace_slow: bool = False
    """Whether a node is replaced that computes much slower than its kind."""
    max_dollars: float | None = None
    """The most that its nodes may cost."""
    detach: bool = False
    """Whether the command ends as soon as the nodes have agreed on the first attempt."""
    leave: bool = False
    """Whether Ctrl-C ends the command alone, and not the run."""


DEFAULT = Wishes()


class RequestedRuns:
    """The runs that are wanted of a group of nodes, in their order."""

    def __init__(self, store: Store, group: str) -> None:
        """`group`: the name of a deployment, or of other nodes that share a store."""
        self.store, self._key = store, documents.request_key(group)

    def read(self) -> Sequence[RunRequest]:
        """The requests. Raises ShoalError where they cannot be read."""
        return self._read()[0]

    def with_ends(self) -> list[tuple[RunRequest, RunEnd | None]]:
        return [(each, self.end(each)) for each in self.read()]

    def going(self, runs: Sequence[RunRequest] | None = None) -> list[RunRequest]:
        return [each for each in (self.read() if runs is None else runs) if self.end(each) is None]

    def change(self, change: Callable[[Sequence[RunRequest]], Sequence[RunRequest]]) -> Sequence[RunRequest]:
        """Change the requests, whoever does so at the same time, and return them. Raises ShoalError where they cannot
        be read."""
        for _ in range(_CHANGES_AT_ONCE):
            runs, known = self._read()
            changed = tuple(change(runs))
            if changed == tuple(runs) or self.store.write_if(self._key, RequestQueue(runs=changed).to_json(), known):
                return changed
        raise ShoalError(f"{self._place} is changed by others again and again; type the command again")

    def end(self, request: RunRequest) -> RunEnd | None:
        """How a launch has ended; None while it has not. Others may write there, too: what is none does not count."""
        with suppress(DataError):
            found = self.store.read(request.end_key)
            if found is not None and (end := RunEnd.from_json(found.text)).token == request.token:
                return end
        return None

    def end_by_hand(self, request: RunRequest, error: str = "") -> None:
        """Write that a launch has ended, where no node is left to do so; `error`: why it has failed."""
        end = RunEnd(token=request.token, outcome="failed" if error else "stopped", error=error)
        self.store.write(request.end_key, end.to_json())

    @property
    def _place(self) -> str:
        return f"{self.store.name}/{self._key}"

    def _read(self) -> tuple[Sequence[RunRequest], Document | None]:
        found = self.store.read(self._key)
        try:
            return (RequestQueue.from_json(found.text).runs if found else ()), found
        except DataError as error:
            raise ShoalError(
                f"{self._place} has no requests of this Shoal: {error}; delete it, and type the command again"
            ) from error


class RunLaunch(ABC):
    when_silent: ClassVar[str]
    """What to do where the agent of a node does not answer: the end of a sentence."""

    def __init__(self, wanted: RequestedRuns, run: str) -> None:
        """`run`: the name of one that goes on, or of a new one. Raises ShoalError for what is no such name."""
        self.wanted, self.run = wanted, names.run(run)
        self.found = False
        """Whether an earlier command has begun it."""
        self._request: RunRequest | None = None
        self._started: tuple[str, ...] = ()
        self._attempts: list[Attempt] = []
        self._number = 0

    @property
    def request(self) -> RunRequest:
        assert self._request is not None
        return self._request

    @property
    def is_claimed(self) -> bool:
        return self._request is not None

    @property
    def started(self) -> tuple[str, ...]:
        return self._started

    @property
    def left_in(self) -> str:
        """Where its nodes leave what they write: an address or a path."""
        return f"{self.wanted.store.name}/{documents.RUNS}{self.run}/"

    @abstractmethod
    def require_free(self, going: Sequence[RunRequest]) -> None:
        """Raise ShoalError where nodes do one of these runs, or are about to."""

    def put_in(self, wanted: RunRequest, wishes: Wishes, *, anew: bool) -> bool:
        """Put a request among those of the nodes, or follow the launch that the same command has begun, also with
        another name; whether it was put there.

        Raises ShoalError where another run is wanted of the nodes, and it may not wait for that.
        """
        runs = self.wanted.change(partial(self._with, wanted, wishes, anew=anew))
        if wanted not in runs:
            self.follow(next(each for each in reversed(runs) if wanted.same_work(each)))
            return False
        attempts = self.wanted.store.list(documents.attempts_prefix(self.run))
        self._request, self._number = wanted, max(map(documents.attempt_number, attempts), default=0)
        return True

    def follow(self, request: RunRequest) -> None:
        """Follow a launch that an earlier command has begun."""
        self.found, self._request, self.run = True, request, names.run(request.run)

    def begin(self, instances: Sequence[str], *, until: float | None = None) -> None:
        """Have these nodes begin; `until`: when their ranks are to stop, in seconds since 1970."""
        self._started = tuple(instances)
        if not self.request.ready:
            self._replace(ready=True, until=until)

    def ask_to_stop(self) -> None:
        self._replace(stop=True)

    def end_by_hand(self, error: str = "") -> None:
        """Write that it has ended, where no node is left to do so; `error`: why it has failed."""
        self.wanted.end_by_hand(self.request, error)

    def before(self) -> Sequence[RunRequest]:
        first = itertools.takewhile(lambda each: each.token != self.request.token, self.wanted.read())
        return self.wanted.going(list(first))

    def give_up(self, request: RunRequest) -> None:
        """End another run, whose command was ended before its nodes had booted."""
        self.wanted.end_by_hand(request, "its command was ended before its nodes had booted")

    def forget(self) -> None:
        """Remove the request: nodes that stay have nothing more to do."""
        self.wanted.change(lambda runs: [each for each in runs if each.token != self.request.token])

    def attempt(self) -> Attempt | None:
        """The latest attempt at this launch; None before the nodes have agreed on the first."""
        return next(reversed(self.attempts()), None)

    def attempts(self) -> list[Attempt]:
        """All attempts at this launch so far. Others may write there, too: what is none does not count."""
        while (text := self._read(documents.attempt_key(self.run, self._number + 1))) is not None:
            self._number += 1
            with suppress(DataError):
                if (found := Attempt.from_json(text)).token == self.request.token:
                    self._attempts.append(found)
        return self._attempts

    def end(self) -> RunEnd | None:
        """How the launch has ended; None while it has not."""
        return self.wanted.end(self.request)

    def statuses(self) -> Mapping[str, NodeStatus]:
        """What the nodes of the latest attempt have told of it, by instance; before the first, what those told that
        were started. Others may write there, too: what is no status does not count."""
        found: dict[str, NodeStatus] = {}
        attempt = self.attempt()
        for instance in attempt.instances if attempt else self._started:
            with suppress(DataError):
                status = NodeStatus.from_json(self._read(documents.status_key(instance)) or "")
                if status.token == self.request.token and (attempt is None or status.attempt == attempt.number):
                    found[instance] = status
        return found

    def _replace(self, **changes: object) -> None:
        new = self._request = replace(self.request, **changes)  # type: ignore[arg-type]
        self.wanted.change(lambda runs: [new if each.token == new.token else each for each in runs])

    def _read(self, key: str) -> str | None:
        found = self.wanted.store.read(key)
        return found.text if found else None

    def _with(
        self, wanted: RunRequest, wishes: Wishes, runs: Sequence[RunRequest], *, anew: bool
    ) -> Sequence[RunRequest]:
        """The requests with this one; the same where it is among them. Raises ShoalError where another is not over."""
        ends = {each.token: self.wanted.end(each) for each in runs}
        same = [each for each in runs if wanted.same_work(each)]
        if any(_may_be_followed(ends[each.token], anew=anew) for each in same):
            return runs
        going = [each for each in runs if ends[each.token] is None]
        if going and not wishes.queue:
            self.require_free(going)
            for each in going:
                self.wanted.end_by_hand(each, "no node ran for it, and another training has begun")
            going = []
        return [*going, wanted]


def _may_be_followed(end: RunEnd | None, *, anew: bool) -> bool:
    """Whether the same command follows a launch that it finds: one that goes on, or has left what nobody fetched."""
    return end is None or (end.outcome == "finished" and not anew)
