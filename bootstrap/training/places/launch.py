"""A launch of a run, wherever its agents are: what they are asked to do, and what they tell of it.

All of it are documents in a store, which is all that a command and the agents have in common.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from bootstrap.agent import documents
from bootstrap.agent.documents import REQUEST_NAME, RequestDocument, RunRequest
from bootstrap.agent.node_documents import Attempt, NodeStatus, RunEnd
from bootstrap.agent.store import Bucket, Document, Store
from bootstrap.aws import fetched, names
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import retrying
from bootstrap.nodes import fleet
from bootstrap.nodes.scale_up import READY_SECONDS
from bootstrap.progress import Bars
from common.errors import DataError, ShoalError
from corpus.reading.s3 import S3Path, head_or_none
from infra import topology
from trainer.command_line import option_values
from trainer.config import TrainConfig
from trainer.output.run_files import SUMMARY

_SET_BY_NODES = ("data", "output", "cache")
_CHANGES_AT_ONCE = 20
"""How often a change of the requests is tried again that others have changed meanwhile."""


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """What a command wants of its launch."""

    keep: bool = False
    """Whether the nodes stay when it has ended."""
    min_nodes: int = 1
    """The fewest nodes that train, where some are lost."""
    max_dollars: float | None = None
    """The most that its nodes may cost."""
    managed: bool = False
    """Whether a job of SageMaker trains, where there are nodes, too."""
    detach: bool = False
    """Whether the command ends as soon as the nodes have agreed on the first attempt."""
    leave: bool = False
    """Whether Ctrl-C ends the command alone, and not the run."""


DEFAULT = LaunchOptions()


def needs_prices(region: str) -> str:
    return (
        f"--max-dollars needs prices, and those of {region} are not known; `make prices REGION={region}` makes a list "
        "of them"
    )


class RequestedRuns:
    """The run that is wanted of a group of nodes, if there is one, and the runs before it."""

    def __init__(self, store: Store, group: str) -> None:
        """`group`: the name of a deployment, or of other nodes that share a store."""
        self.store, self._group, self._key = store, group, documents.request_key(group)

    def new_name(self) -> str:
        """A name for a run: sorted by time, and different for two runs that start at once."""
        return f"{self._group}.{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"

    def unfinished(self) -> str:
        """The newest run that did not end. Raises ShoalError when there is none."""
        found = {key.split("/")[1] for key in self.store.list(f"{documents.RUNS}{self._group}.")}
        for name in sorted(filter(names.is_run, found), reverse=True):
            summary = self.store.read(f"{documents.RUNS}{name}/{SUMMARY}")
            if summary is None or '"stopped": true' in summary.text:
                return name
        raise ShoalError(f"no training of '{self._group}' was stopped; leave out --resume to start one")

    def read(self) -> RunRequest | None:
        """The request. Raises ShoalError where it cannot be read."""
        return self._read()[0]

    def at_work(self) -> RunRequest | None:
        """The request, unless its run has ended. Raises ShoalError where it cannot be read."""
        found = self.read()
        return found if found and self.end(found) is None else None

    def change(self, change: Callable[[RunRequest | None], RunRequest | None]) -> RunRequest | None:
        """Change the request, also where others do so at the same time; returns the new one. Raises ShoalError where it
        cannot be read."""
        for _ in range(_CHANGES_AT_ONCE):
            found, known = self._read()
            changed = change(found)
            runs = (changed,) if changed else ()
            if changed == found or self.store.write_if(self._key, RequestDocument(runs=runs).to_json(), known):
                return changed
        raise ShoalError(f"{self._place} is changed by others again and again; type the command again")

    def end(self, request: RunRequest) -> RunEnd | None:
        """How a launch has ended; None while it has not."""
        found = self.store.read(request.end_key)
        return RunEnd.of_launch(request.token, found.text) if found else None

    def end_by_hand(self, request: RunRequest, error: str = "") -> None:
        """Write that a launch has ended, where no node is left to do so; `error`: why it has failed. An end that a node
        has written stays."""
        found = self.store.read(request.end_key)
        if found is None or RunEnd.of_launch(request.token, found.text) is None:
            end = RunEnd(token=request.token, outcome="failed" if error else "stopped", error=error)
            self.store.write_if(request.end_key, end.to_json(), found)

    @property
    def _place(self) -> str:
        return f"{self.store.name}/{self._key}"

    def _read(self) -> tuple[RunRequest | None, Document | None]:
        found = self.store.read(self._key)
        try:
            return (RequestDocument.from_json(found.text).request if found else None), found
        except DataError as error:
            raise ShoalError(
                f"{self._place} has no request of this Shoal: {error}; delete it, and type the command again"
            ) from error


class Launch:
    when_silent = "if its deployment is of an earlier version of Shoal, deploy it again"
    """What to do where the agent of a node does not answer: the end of a sentence."""

    def __init__(self, wanted: RequestedRuns, run: str) -> None:
        """`run`: the name of one that goes on, or of a new one. Raises ShoalError for what is no such name."""
        self.wanted, self.run = wanted, names.run(run)
        self.found = False
        """Whether an earlier command has begun it."""
        self._request: RunRequest | None = None
        self.started: tuple[str, ...] = ()
        """The nodes that were told to begin."""
        self._attempts: list[Attempt] = []
        self._number = 0

    @property
    def request(self) -> RunRequest:
        assert self._request is not None
        return self._request

    @property
    def left_in(self) -> str:
        """Where its nodes leave what they write: an address or a path."""
        return f"{self.wanted.store.name}/{documents.RUNS}{self.run}/"

    def require_free(self, run: str) -> None:
        """Raise ShoalError where nodes do this run, or are about to."""

    def claim(self, wishes: LaunchOptions, bars: Bars, *, anew: bool, **wanted: Any) -> bool:
        """Claim the nodes for a training, or follow the launch of it that the same command has begun, also with
        another name; returns whether it is claimed by this call, which then leaves a copy of the request with the run.

        `wanted` are fields of the request; with `anew` a finished launch is not followed. Raises ShoalError where the
        nodes do another run.
        """
        request = RunRequest(
            run=self.run,
            token=secrets.token_hex(4),
            min_nodes=min(wishes.min_nodes, wanted["trainers"]),
            keep=wishes.keep,
            max_dollars=wishes.max_dollars,
            **wanted,
        )
        self._request = request  # an interrupt may come when it is written already: `forget` then removes it
        kept = self.wanted.change(partial(self._claimed, request, anew=anew))
        if kept is not None and kept != request:
            self.follow(kept)
            bars.note(f"following run {self.run}, which the same command has begun")
            return False
        attempts = self.wanted.store.list(documents.attempts_prefix(self.run))
        self._number = max(map(documents.attempt_number, attempts), default=0)
        self.wanted.store.write(self._copy_key, request.to_json())
        return True

    def follow(self, request: RunRequest) -> None:
        """Follow a launch that an earlier command has begun."""
        self.found, self._request, self.run = True, request, names.run(request.run)

    def begin(self, instances: Sequence[str], *, until: float | None = None) -> None:
        """Have these nodes begin; `until`: when their ranks are to stop, in seconds since 1970."""
        self.started = tuple(instances)
        if not self.request.ready:
            self._replace(ready=True, until=until)

    def ask_to_stop(self) -> None:
        self._replace(stop=True)

    def keeps_nodes(self) -> bool:
        """Whether the nodes stay after it: they are to, or are wanted for another run."""
        with suppress(ShoalError):  # nodes do nothing for a request that cannot be read
            other = self.wanted.at_work()
            return self.request.keep or (other is not None and other.token != self.request.token)
        return False

    def request_before(self) -> RunRequest:
        """The request of a run that goes on. Raises ShoalError where it left none that can be read."""
        try:
            return RunRequest.from_json(self._read(self._copy_key) or "")
        except DataError as error:
            place = f"{self.wanted.store.name}/{self._copy_key}"
            raise ShoalError(f"{place} is no request of a run: {error}; leave out --resume") from error

    def is_wanted(self) -> bool:
        """Whether the nodes still have its request, which the command that copies its results removes."""
        found = self.wanted.read()
        return found is not None and found.token == self.request.token

    def forget(self) -> None:
        """Remove the request, if it was written: nodes that stay have nothing more to do."""
        if self._request is not None:
            self._change(None)

    def attempt(self) -> Attempt | None:
        """The latest attempt at this launch; None before the nodes have agreed on the first."""
        return next(reversed(self.attempts()), None)

    def attempts(self) -> list[Attempt]:
        """All attempts at this launch so far."""
        while (text := self._read(documents.attempt_key(self.run, self._number + 1))) is not None:
            self._number += 1
            found = Attempt.of_launch(self.request.token, text)
            if found is not None and found.number == self._number:
                self._attempts.append(found)
        return self._attempts

    def end(self) -> RunEnd | None:
        """How the launch has ended; None while it has not."""
        return self.wanted.end(self.request)

    def statuses(self) -> Mapping[str, NodeStatus]:
        """What the nodes of the latest attempt have reported of it, by instance; before the first, what those reported
        that were started."""
        attempt = self.attempt()
        named = attempt.instances if attempt else self.started
        read = {
            each: NodeStatus.of_launch(self.request.token, self._read(documents.status_key(each))) for each in named
        }
        number = attempt.number if attempt else None
        return {name: each for name, each in read.items() if each and number in (None, each.attempt)}

    def _replace(self, **changes: object) -> None:
        self._request = replace(self.request, **changes)  # type: ignore[arg-type]
        self._change(self._request)

    def _change(self, new: RunRequest | None) -> None:
        """Replace the request if it is this launch's."""
        token = self.request.token
        self.wanted.change(lambda found: new if found is not None and found.token == token else found)

    def _read(self, key: str) -> str | None:
        found = self.wanted.store.read(key)
        return found.text if found else None

    @property
    def _copy_key(self) -> str:
        return f"{documents.RUNS}{self.run}/{REQUEST_NAME}"

    def _claimed(self, wanted: RunRequest, known: RunRequest | None, *, anew: bool) -> RunRequest:
        """The request that stays: the known one where it asks for the same work, else the wanted one. Raises ShoalError
        where the nodes do another run."""
        if known is None:
            return wanted
        end = self.wanted.end(known)
        # A launch that has finished has left results that nobody has copied.
        if wanted.same_work(known) and (end is None or (end.outcome == "finished" and not anew)):
            return known
        if end is None:
            self.require_free(known.run)
            self.wanted.end_by_hand(known, "no node ran for it, and another training has begun")
        return wanted


class NodeLaunch(Launch):
    """A launch of a run on a deployment's nodes, in its data bucket."""

    def __init__(self, deployment: Deployment, run: str) -> None:
        super().__init__(requested_runs(deployment), run)
        self.deployment, self._began, self._bucket = deployment, datetime.now(UTC), _bucket(deployment)

    @property
    def folder(self) -> S3Path:
        """The folder of the run's results."""
        return S3Path(self._bucket, f"{topology.RUNS_PREFIX}{self.run}/")

    @property
    def began(self) -> datetime:
        """When it was asked for; of one that an earlier command has begun, the time in the run's name."""
        if not self.found:
            return self._began
        return documents.start_time(self.run)

    def claim(self, wishes: LaunchOptions, bars: Bars, *, anew: bool, **wanted: Any) -> bool:
        new = super().claim(wishes, bars, anew=anew, **wanted)
        if new:  # nobody needs to fetch what the command was told
            tag = self.wanted.store.list(self._copy_key)[self._copy_key].tag
            s3 = self.deployment.session.client("s3")
            fetched.record(s3, self._bucket, {self.run: {REQUEST_NAME: tag}}, bars.note)
        return new

    def require_free(self, run: str) -> None:
        """Raise ShoalError where nodes run, or may be about to be started."""
        deployment, place = self.deployment, S3Path(self._bucket, documents.request_key(self.deployment.name))
        head, just_changed = head_or_none(deployment.session.client("s3"), place), False
        if head is not None:  # who has changed it may be starting nodes, by S3's own clock
            now = parsedate_to_datetime(head["ResponseMetadata"]["HTTPHeaders"]["date"])
            just_changed = (now - head["LastModified"]).total_seconds() < READY_SECONDS
        if just_changed or any(group.desired for group in fleet.groups(deployment)):
            raise ShoalError(
                f"a training uses the nodes of '{deployment.name}': {run}; wait until it has ended, or stop it: "
                f"shoal stop {deployment.name} {run}"
            )

    def first_attempt_at(self) -> datetime | None:
        """When the nodes agreed on the first attempt, by S3's own clock; None before that."""
        for first in self.attempts()[:1]:
            place = S3Path(self._bucket, documents.attempt_key(self.run, first.number))
            head = retrying(partial(head_or_none, self.deployment.session.client("s3"), place))
            if head is not None:
                return head["LastModified"]
        return None


def options_of(config: TrainConfig) -> dict[str, tuple[str, ...]]:
    return {name: words for name, words in option_values(config).items() if name not in _SET_BY_NODES}


def requested_runs(deployment: Deployment) -> RequestedRuns:
    store = Bucket(_bucket(deployment), deployment.session.client("s3"), call=retrying)
    return RequestedRuns(store, deployment.name)


def _bucket(deployment: Deployment) -> str:
    return names.bucket(deployment.output(topology.OUTPUT_DATA_BUCKET))
