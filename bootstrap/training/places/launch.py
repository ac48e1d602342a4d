"""A launch of a run on a deployment's nodes: the request that their agents follow, and what they tell of it."""

import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from bootstrap.agent import documents
from bootstrap.agent.documents import REQUEST_NAME, RequestQueue, RunRequest
from bootstrap.agent.node_documents import Attempt, NodeStatus, RunEnd
from bootstrap.aws import fetched, names
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import retrying
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode
from bootstrap.nodes.scale_up import READY_SECONDS
from bootstrap.progress import Bars
from common.errors import DataError, ShoalError
from corpus.reading.s3 import S3Path, head_if_there, list_objects, put, put_if, read_text
from infra import topology
from trainer.command_line import as_words
from trainer.config import TrainConfig

_SET_BY_NODES = ("data", "output", "cache", "trust_network")
_LAUNCHES_AT_ONCE = 20
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
    max_dollars: float | None = None
    """The most that its nodes may cost."""
    alone: bool = False
    """Whether it is another launch than one that the same command has begun."""
    detach: bool = False
    """Whether the command ends as soon as the nodes have agreed on the first attempt."""
    leave: bool = False
    """Whether Ctrl-C ends the command alone, and not the run."""


DEFAULT = Wishes()


class NodeLaunch:
    """A launch of a run, from its request to what is fetched."""

    def __init__(self, deployment: Deployment, run: str) -> None:
        """`run`: the name of one that goes on, or of a new one. Raises ShoalError for what is no such name."""
        self.deployment, self.run = deployment, names.run(run)
        self.bucket = names.bucket(deployment.output(topology.OUTPUT_DATA_BUCKET))
        self._began = datetime.now(UTC)
        self.found = False
        """Whether an earlier command has begun it."""
        self._s3 = deployment.session.client("s3")
        self._request: RunRequest | None = None
        self._started: tuple[str, ...] = ()
        self._attempts: list[Attempt] = []
        self._number = 0

    @property
    def folder(self) -> S3Path:
        """The folder of the run's results."""
        return S3Path(self.bucket, f"{topology.RUNS_PREFIX}{self.run}/")

    @property
    def request(self) -> RunRequest:
        """The request; `claim` or `find` makes it."""
        assert self._request is not None
        return self._request

    @property
    def is_claimed(self) -> bool:
        """Whether there is a request."""
        return self._request is not None

    @property
    def began(self) -> datetime:
        """When it was asked for; of one that an earlier command has begun, the time in the run's name."""
        if not self.found:
            return self._began
        return datetime.strptime(self.run.rpartition(".")[2].partition("-")[0], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)

    @property
    def started(self) -> tuple[str, ...]:
        """The ids of the nodes that were started for it."""
        return self._started

    def claim(
        self,
        config: TrainConfig,
        learnt: Mapping[str, Any],
        *,
        trainers: int,
        readers: int,
        wishes: Wishes,
        bars: Bars,
    ) -> None:
        """Claim the nodes for this training, or find it where the same command has begun it, also with another name;
        `learnt`: the fields of the request that say what it learns from.

        Raises ShoalError where another run is wanted of the nodes, and it may not wait for that.
        """
        wanted = RunRequest(
            run=self.run,
            token=secrets.token_hex(4),
            trainers=trainers,
            readers=readers,
            min_nodes=min(wishes.min_nodes, trainers),
            keep=wishes.keep,
            max_dollars=wishes.max_dollars,
            share=self.deployment.share,
            options={name: words for name, words in as_words(config).items() if name not in _SET_BY_NODES},
            **learnt,
        )
        runs = self._change(partial(self._claimed, wanted, wishes, anew=config.force))
        if wanted not in runs:
            self.follow(next(each for each in reversed(runs) if wanted.same_work(each)))
            bars.note(f"following run {self.run}, which the same command has begun")
            return
        self._request, self._number = wanted, self._newest_attempt()
        copy = S3Path(self.bucket, self.folder.key + REQUEST_NAME)
        fetched.put(self._s3, copy, self.run, wanted.to_json(), bars.note)

    def follow(self, request: RunRequest) -> None:
        """Follow a launch that an earlier command has begun."""
        self.found, self._request, self.run = True, request, names.run(request.run)

    def begin(self, nodes: Sequence[GpuNode], *, until: float | None = None) -> None:
        """Have these nodes begin, those that train and those that read; `until`: when their ranks are to stop, in
        seconds since 1970."""
        self._started = tuple(each.instance_id for each in nodes)
        if not self.request.ready:
            self._request = replace(self.request, ready=True, until=until)
            retrying(partial(self._change, self._replaced))

    def ask_to_stop(self) -> None:
        """Ask all nodes to stop with a checkpoint."""
        self._request = replace(self.request, stop=True)
        retrying(partial(self._change, self._replaced))

    def end_by_hand(self, error: str = "") -> None:
        """Write that it has ended, where no node is left to do so; `error`: why it has failed."""
        _write_end(self.deployment, self.request, error)

    def before(self) -> Sequence[RunRequest]:
        """The runs that have to end before it."""
        runs = _queue(self.deployment)[0]
        first = itertools.takewhile(lambda each: each.token != self.request.token, runs)
        return [each for each in first if _end(self.deployment, each) is None]

    def give_up(self, request: RunRequest) -> None:
        """End another run, whose command was ended before its nodes had booted."""
        _write_end(self.deployment, request, "its command was ended before its nodes had booted")

    def keeps_nodes(self) -> bool:
        """Whether the nodes stay after it: they are to, or are wanted for another run."""
        with suppress(ShoalError):  # of requests that cannot be read no node does anything
            others = [each for each in _queue(self.deployment)[0] if each.token != self.request.token]
            return self.request.keep or any(_end(self.deployment, each) is None for each in others)
        return False

    def request_before(self) -> RunRequest:
        """The request of a run that goes on. Raises ShoalError where it left none that can be read."""
        place = S3Path(self.bucket, self.folder.key + REQUEST_NAME)
        try:
            return RunRequest.from_json(read_text(self._s3, place) or "")
        except DataError as error:
            raise ShoalError(f"{place} is no request of a run: {error}; leave out --resume") from error

    def forget(self) -> None:
        """Remove the request: nodes that stay have nothing more to do."""
        self._change(self._removed)

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

    def first_attempt_at(self) -> datetime | None:
        """When the nodes agreed on the first attempt, by S3's own clock; None before that."""
        for first in self.attempts()[:1]:
            place = S3Path(self.bucket, documents.attempt_key(self.run, first.number))
            if (head := retrying(partial(head_if_there, self._s3, place))) is not None:
                return head["LastModified"]
        return None

    def end(self) -> RunEnd | None:
        """How the launch has ended; None while it has not."""
        return _end(self.deployment, self.request)

    def statuses(self) -> Mapping[str, NodeStatus]:
        """What the nodes of the latest attempt have told of it, by instance; before the first, what those told that
        were started. Others may write there, too: what is no status does not count."""
        found: dict[str, NodeStatus] = {}
        attempt = self.attempt()
        for instance in attempt.instances if attempt else self._started:
            with suppress(DataError):
                text = self._read(documents.status_key(instance))
                status = NodeStatus.from_json(text or "")
                if status.token == self.request.token and (attempt is None or status.attempt == attempt.number):
                    found[instance] = status
        return found

    def _newest_attempt(self) -> int:
        """The number of the newest attempt at an earlier launch."""
        keys = list_objects(self._s3, S3Path(self.bucket, documents.attempts_prefix(self.run)))
        return max((documents.attempt_number(each["Key"]) for each in keys), default=0)

    def _read(self, key: str) -> str | None:
        return retrying(partial(read_text, self._s3, S3Path(self.bucket, key)))

    def _claimed(
        self, wanted: RunRequest, wishes: Wishes, runs: Sequence[RunRequest], *, anew: bool
    ) -> Sequence[RunRequest]:
        """The requests with this one; the same where it is among them. Raises ShoalError where another is not over."""
        ends = {each.token: _end(self.deployment, each) for each in runs}
        same = [each for each in runs if wanted.same_work(each) and not wishes.alone]
        if any(_may_be_followed(ends[each.token], anew=anew) for each in same):
            return runs
        going = [each for each in runs if ends[each.token] is None]
        if going and not wishes.queue:
            _require_no_nodes(self.deployment, going)
            for each in going:
                _write_end(self.deployment, each, "no node ran for it, and another training has begun")
            going = []
        return [*going, wanted]

    def _replaced(self, runs: Sequence[RunRequest]) -> Sequence[RunRequest]:
        return [self.request if each.token == self.request.token else each for each in runs]

    def _removed(self, runs: Sequence[RunRequest]) -> Sequence[RunRequest]:
        return [each for each in runs if each.token != self.request.token]

    def _change(self, change: Callable[[Sequence[RunRequest]], Sequence[RunRequest]]) -> Sequence[RunRequest]:
        return _change(self.deployment, change)


def wanted_runs(deployment: Deployment) -> list[tuple[RunRequest, RunEnd | None]]:
    """The runs that are wanted of a deployment's nodes, in their order, each with its end where it has ended."""
    return [(each, _end(deployment, each)) for each in _queue(deployment)[0]]


def require_free(deployment: Deployment) -> None:
    """Raise ShoalError while a run is wanted of a deployment's nodes: two would end each other's nodes. Requests that
    are over are removed, as the guard ends nodes by them."""
    going = [each for each, end in wanted_runs(deployment) if end is None]
    _require_no_nodes(deployment, going)
    _change(deployment, lambda runs: [each for each in runs if _end(deployment, each) is None])


def _require_no_nodes(deployment: Deployment, going: Sequence[RunRequest]) -> None:
    """Raise ShoalError where nodes run for these runs, or may be about to be started."""
    if going and (_was_just_changed(deployment) or any(group.desired for group in fleet.groups(deployment))):
        run = going[0].run
        raise ShoalError(
            f"a training uses the nodes of '{deployment.name}': {run}; to wait for it, add --queue; to stop it, type: "
            f"shoal stop {deployment.name} {run}"
        )


def _was_just_changed(deployment: Deployment) -> bool:
    """Whether the requests were changed so recently that who did so may be starting nodes, by S3's own clock."""
    head = head_if_there(deployment.session.client("s3"), queue_path(deployment))
    if head is None:
        return False
    now = parsedate_to_datetime(head["ResponseMetadata"]["HTTPHeaders"]["date"])
    return (now - head["LastModified"]).total_seconds() < READY_SECONDS


def _may_be_followed(end: RunEnd | None, *, anew: bool) -> bool:
    """Whether the same command follows a launch that it finds: one that goes on, or has left what nobody fetched."""
    return end is None or (end.outcome == "finished" and not anew)


def _change(
    deployment: Deployment, change: Callable[[Sequence[RunRequest]], Sequence[RunRequest]]
) -> Sequence[RunRequest]:
    """Change the requests to the nodes, whoever does so at the same time, and return them. Raises ShoalError where they
    cannot be read."""
    place = queue_path(deployment)
    for _ in range(_LAUNCHES_AT_ONCE):
        runs, etag = _queue(deployment)
        changed = tuple(change(runs))
        if changed == tuple(runs):
            return changed
        written = RequestQueue(runs=changed).to_json().encode()
        if put_if(deployment.session.client("s3"), place, written, etag=etag):
            return changed
    raise ShoalError(f"{place} is changed by others again and again; type the command again")


def _write_end(deployment: Deployment, request: RunRequest, error: str) -> None:
    end = RunEnd(token=request.token, outcome="failed" if error else "stopped", error=error)
    put(deployment.session.client("s3"), S3Path(queue_path(deployment).bucket, request.end_key), end.to_json().encode())


def _queue(deployment: Deployment) -> tuple[Sequence[RunRequest], str | None]:
    """The requests to a deployment's nodes, and the tag of the object that has them; None where there is none."""
    place, client = queue_path(deployment), deployment.session.client("s3")
    head = head_if_there(client, place)
    text = read_text(client, place) if head else None
    if head is None or text is None:
        return (), None
    try:
        return RequestQueue.from_json(text).runs, head["ETag"]
    except DataError as error:
        raise ShoalError(
            f"{place} has no requests of this Shoal: {error}; delete it, and type the command again"
        ) from error


def queue_path(deployment: Deployment) -> S3Path:
    """Where the requests to a deployment's nodes are."""
    bucket = names.bucket(deployment.output(topology.OUTPUT_DATA_BUCKET))
    return S3Path(bucket, documents.request_key(deployment.name))


def _end(deployment: Deployment, request: RunRequest) -> RunEnd | None:
    """How a launch has ended; None while it has not. Others may write there, too: what is none does not count."""
    place = S3Path(queue_path(deployment).bucket, request.end_key)
    with suppress(DataError):
        text = retrying(partial(read_text, deployment.session.client("s3"), place))
        if text is not None and (found := RunEnd.from_json(text)).token == request.token:
            return found
    return None
