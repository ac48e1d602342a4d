"""Documents of runs in a store: the requests to the agents, and the agents' reports.

Requests and reports are documents. A command and the agents communicate only through the store.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from bootstrap.node.documents import RequestDocument, RunRequest
from bootstrap.node.node_documents import Attempt, NodeStatus, RunEnd
from bootstrap.node.store import Store, StoredDocument
from common import names
from common.errors import DataError, ShoalError
from common.progress import reporter
from shoal.aws import checked
from shoal.runs.run import Run
from trainer.output.run_files import SUMMARY

_CHANGES_AT_ONCE = 20
"""Maximum number of attempts to change a document while other commands also change it."""


class RequestedRuns:
    """Current request to a group of nodes, and the group's earlier runs."""

    def __init__(self, store: Store, group: str) -> None:
        """`group` is the name of a deployment, or of the hosts that share a store."""
        self.store, self._group, self._key = store, group, names.request_key(group)

    def new_name(self) -> str:
        """Return a name for a new run. Names sort by time, and differ even for simultaneous starts."""
        return f"{self._group}.{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"

    def unfinished(self) -> str:
        """Return the name of the newest unfinished run. Raises ShoalError if all runs have finished."""
        runs = {key.split("/")[1] for key in self.store.list(f"{names.RUNS}{self._group}.")}
        for name in sorted(filter(names.is_run, runs), reverse=True):
            summary = self.store.read(f"{names.RUNS}{name}/{SUMMARY}")
            if summary is None or '"stopped": true' in summary.text:
                return name
        raise ShoalError(f"'{self._group}' has no stopped run to resume; start a new run without --resume")

    def read(self) -> RunRequest | None:
        """Return the request, or None if there is no request. Raises ShoalError if it is unreadable."""
        return self._read()[0]

    def active_request(self) -> RunRequest | None:
        """Return the request if its run is active, else None. Raises ShoalError if it is unreadable."""
        request = self.read()
        return request if request and self.end(request) is None else None

    def change(self, change: Callable[[RunRequest | None], RunRequest | None]) -> RunRequest | None:
        """Replace the request with the result of `change`, and return this result.

        Repeats the change if another command has changed the request at the same time.

        Raises ShoalError if the request is unreadable.
        """
        for _ in range(_CHANGES_AT_ONCE):
            current, known = self._read()
            changed = change(current)
            runs = (changed,) if changed else ()
            if changed == current or self.store.write_if(self._key, RequestDocument(runs=runs).to_json(), known):
                return changed
        raise ShoalError(f"other commands keep changing {self._place}; repeat the command")

    def earlier(self, run: str) -> RunRequest:
        """Return the request of a run to resume, from the copy in the run's folder.

        Raises ShoalError if the copy is missing or invalid.
        """
        key = names.request_copy_key(run)
        try:
            document = self.store.read(key)
            return RunRequest.from_json(document.text if document else "")
        except DataError as error:
            raise ShoalError(
                f"{self.store.name}/{key} is not a valid request: {error}; start a new run without --resume"
            ) from error

    def end(self, request: RunRequest) -> RunEnd | None:
        """Return how a launch ended; None while it has not ended."""
        document = self.store.read(request.end_key)
        return RunEnd.of_launch(request.token, document.text) if document else None

    def write_end(self, request: RunRequest, error: str = "") -> None:
        """Write the end of a launch, because no node is left to write it. An end that a node has written is kept.

        `error` says why the launch failed; empty if it was stopped.
        """
        document = self.store.read(request.end_key)
        if document is None or RunEnd.of_launch(request.token, document.text) is None:
            end = RunEnd(token=request.token, outcome="failed" if error else "stopped", error=error)
            self.store.write_if(request.end_key, end.to_json(), document)

    @property
    def _place(self) -> str:
        return f"{self.store.name}/{self._key}"

    def _read(self) -> tuple[RunRequest | None, StoredDocument | None]:
        document = self.store.read(self._key)
        try:
            return (RequestDocument.from_json(document.text).request if document else None), document
        except DataError as error:
            raise ShoalError(
                f"{self._place} is not a request of this version of Shoal: {error}; delete it, and repeat the command"
            ) from error


class Launch:
    """Launch of a run: the run's request, attempts, node statuses and end, which are documents in a store."""

    def __init__(
        self, requests: RequestedRuns, run: str, *, require_free: Callable[[str], None] = lambda _: None
    ) -> None:
        """Raises ShoalError if the name of the run is invalid.

        Args:
            requests: The requests to the group of nodes.
            run: The name of a new run or of a run to resume.
            require_free: Raises ShoalError if nodes are executing the run with a name, or are about to execute it.
        """
        self.requests, self.run, self._require_free = requests, checked.run(run), require_free
        self.already_started = False
        """True if an earlier command started the launch."""
        self._request: RunRequest | None = None
        self.started: tuple[str, ...] = ()
        """IDs of the instances for which `start` was called."""
        self._end: RunEnd | None = None
        self._earlier_attempts = 0
        """Number of attempts of the run before this launch."""

    @cached_property
    def reports(self) -> "NodeReports":
        """Documents that the nodes write for this launch."""
        return NodeReports(self.requests.store, self.run, self.request.token, after=self._earlier_attempts)

    @property
    def is_claimed(self) -> bool:
        """True if this command has written the request, or has tried to."""
        return self._request is not None

    @property
    def request(self) -> RunRequest:
        assert self._request is not None
        return self._request

    def claim(self, run: Run, **fields: Any) -> bool:
        """Claim the nodes for a run, or follow the launch that an earlier command started for the same work.

        Returns True if this call claimed the nodes. In that case the run's folder contains a copy of the request.

        Args:
            run: The run.
            fields: The fields of the request that `run` lacks: `trainers`, `share` and, if they apply, `readers` and
                `nodes`. Other fields replace those of the run.

        Raises:
            ShoalError: The nodes are executing a different run.
        """
        request = RunRequest(
            run=self.run,
            token=secrets.token_hex(4),
            min_nodes=min(run.limits.min_nodes, fields["trainers"]),
            keep=run.limits.keep,
            max_dollars=run.limits.max_dollars,
            **{"options": run.options, **run.data.request(), **fields},
        )
        self._request = request  # so that `forget` removes the request if the next call writes it and is interrupted
        kept = self.requests.change(partial(self._claimed, request, force=run.forces))
        if kept is not None and kept != request:
            self.follow(kept)
            reporter().note(f"following run {self.run}, which the same command started")
            return False
        attempts = self.requests.store.list(names.attempts_prefix(self.run))
        self._earlier_attempts = max(map(names.attempt_number, attempts), default=0)
        self.requests.store.write(names.request_copy_key(self.run), request.to_json())
        return True

    def follow(self, request: RunRequest) -> None:
        """Use the launch of an earlier command, which wrote `request`."""
        self.already_started, self._request, self.run = True, request, checked.run(request.run)

    def start(self, instances: Sequence[str], *, until: float | None = None) -> None:
        """Tell the nodes to start the run. `until` is the Unix time at which the ranks must stop; None: no limit."""
        self.started = tuple(instances)
        if not self.request.ready:
            self._replace(ready=True, until=until)

    def ask_to_stop(self) -> None:
        self._replace(stop=True)

    def keeps_nodes(self) -> bool:
        """Return whether the nodes must not be stopped after this run, because of an option or because another run uses
        them.
        """
        with suppress(ShoalError):  # nodes ignore an unreadable request
            other = self.requests.active_request()
            return self.request.keep or (other is not None and other.token != self.request.token)
        return False

    def is_wanted(self) -> bool:
        """Return whether the request of this launch still exists.

        The command that fetches the results removes the request.
        """
        request = self.requests.read()
        return request is not None and request.token == self.request.token

    def forget(self) -> None:
        """Remove the request if it was written. Nodes that are still running then become idle."""
        if self.is_claimed:
            self._change(None)

    def end(self) -> RunEnd | None:
        """Return how the launch ended; None while it has not ended. The store is not read again after the end."""
        if self._end is None:
            self._end = self.requests.end(self.request)
        return self._end

    def _replace(self, **changes: object) -> None:
        self._request = replace(self.request, **changes)  # type: ignore[arg-type]
        self._change(self._request)

    def _change(self, new: RunRequest | None) -> None:
        """Replace this launch's request with `new`; None removes it. A request of a different launch is kept."""
        token = self.request.token
        self.requests.change(lambda current: new if current is not None and current.token == token else current)

    def _claimed(self, new: RunRequest, known: RunRequest | None, *, force: bool) -> RunRequest:
        """Return the known request if it is for the same work as the new request; otherwise return the new request.

        Raises ShoalError if the nodes are executing a different run.
        """
        if known is None:
            return new
        end = self.requests.end(known)
        # If a finished launch still has a request, no command has fetched the results of the launch.
        if new.same_work(known) and (end is None or (end.outcome == "finished" and not force)):
            return known
        if end is None:
            self._require_free(known.run)
            self.requests.write_end(known, "no node executed it, and a different run was started")
        return new


class NodeReports:
    """Attempts of a launch, and the statuses of its nodes."""

    def __init__(self, store: Store, run: str, token: str, *, after: int) -> None:
        """`after` is the number of attempts that earlier launches of the run made."""
        self._store, self._run, self._token = store, run, token
        self._attempts: list[Attempt] = []
        self._number = after

    def attempts(self) -> list[Attempt]:
        """Return all attempts so far, oldest first."""
        while (document := self._store.read(names.attempt_key(self._run, self._number + 1))) is not None:
            self._number += 1
            attempt = Attempt.of_launch(self._token, document.text)
            if attempt is not None and attempt.number == self._number:
                self._attempts.append(attempt)
        return self._attempts

    def statuses(self, started: Sequence[str]) -> Mapping[str, NodeStatus]:
        """Return the statuses of the latest attempt's nodes, by instance ID.

        Before the first attempt, return the statuses of the nodes that were `started`.
        """
        attempt = next(reversed(self.attempts()), None)
        statuses = {}
        for name in attempt.instances if attempt else started:
            document = self._store.read(names.status_key(name))
            status = NodeStatus.of_launch(self._token, document and document.text)
            if status is not None and (attempt is None or status.attempt == attempt.number):
                statuses[name] = status
        return statuses
