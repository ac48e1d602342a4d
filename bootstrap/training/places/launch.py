"""A launch of a run on a deployment's nodes: the request that their agents follow, and what they tell of it."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
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
from bootstrap.progress import Bars
from common.errors import DataError, ShoalError
from corpus.reading.s3 import S3Path, head_if_there, list_objects, put_if, read_text
from infra import topology
from trainer.command_line import as_words
from trainer.config import TrainConfig

_SET_BY_NODES = ("data", "output", "cache", "trust_network")
_LAUNCHES_AT_ONCE = 20
"""How often a change of the requests is tried again that others have changed meanwhile."""


class NodeLaunch:
    """A launch of a run, from its request to what is fetched."""

    def __init__(self, deployment: Deployment, run: str) -> None:
        """`run`: the name of one that goes on, or of a new one. Raises ShoalError for what is no such name."""
        self.deployment, self.run = deployment, names.run(run)
        self.bucket = names.bucket(deployment.output(topology.OUTPUT_DATA_BUCKET))
        self.folder = S3Path(self.bucket, f"{topology.RUNS_PREFIX}{run}/")
        """The folder of the run's results."""
        self._s3 = deployment.session.client("s3")
        self._request: RunRequest | None = None
        self._started: tuple[str, ...] = ()
        self._attempt: Attempt | None = None
        self._number = 0

    @property
    def request(self) -> RunRequest:
        """The request; `start` makes it."""
        assert self._request is not None
        return self._request

    @property
    def started(self) -> tuple[str, ...]:
        """The ids of the nodes that were started for it."""
        return self._started

    def start(self, nodes: Sequence[GpuNode], config: TrainConfig, learnt: Mapping[str, Any], bars: Bars) -> None:
        """Ask the nodes, those that train and those that read, for this training; `learnt`: the fields of the request
        that say what it learns from. Raises ShoalError where another run is wanted of them."""
        options = {name: words for name, words in as_words(config).items() if name not in _SET_BY_NODES}
        trainers = sum(each.gpus > 0 for each in nodes)
        self._request = RunRequest(
            run=self.run,
            token=secrets.token_hex(4),
            trainers=trainers,
            readers=len(nodes) - trainers,
            share=self.deployment.share,
            options=options,
            **learnt,
        )
        self._started = tuple(each.instance_id for each in nodes)
        self._number = self._newest_attempt()
        copy = S3Path(self.bucket, self.folder.key + REQUEST_NAME)
        fetched.put(self._s3, copy, self.run, self._request.to_json(), bars.note)
        self._change(self._added)

    def ask_to_stop(self) -> None:
        """Ask all nodes to stop with a checkpoint."""
        self._request = replace(self.request, stop=True)
        retrying(partial(self._change, self._replaced))

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
        """The latest attempt at this launch; None before the nodes have agreed on the first. Others may write there,
        too: what is none does not count."""
        while (text := self._read(documents.attempt_key(self.run, self._number + 1))) is not None:
            self._number += 1
            with suppress(DataError):
                if (found := Attempt.from_json(text)).token == self.request.token:
                    self._attempt = found
        return self._attempt

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

    def _added(self, runs: Sequence[RunRequest]) -> Sequence[RunRequest]:
        """The requests with this one alone. Raises ShoalError where another is not over."""
        _require_ended(self.deployment, [each for each in runs if each.run != self.run])
        return [self.request]

    def _replaced(self, runs: Sequence[RunRequest]) -> Sequence[RunRequest]:
        return [self.request if each.token == self.request.token else each for each in runs]

    def _removed(self, runs: Sequence[RunRequest]) -> Sequence[RunRequest]:
        return [each for each in runs if each.token != self.request.token]

    def _change(self, change: Callable[[Sequence[RunRequest]], Sequence[RunRequest]]) -> None:
        """Change the requests to the nodes, whoever does so at the same time. Raises ShoalError where they cannot be
        read."""
        for _ in range(_LAUNCHES_AT_ONCE):
            runs, etag = _queue(self.deployment)
            changed = RequestQueue(runs=tuple(change(runs)))
            if put_if(self._s3, queue_path(self.deployment), changed.to_json().encode(), etag=etag):
                return
        place = queue_path(self.deployment)
        raise ShoalError(f"{place} is changed by others again and again; type the command again")


def require_free(deployment: Deployment) -> None:
    """Raise ShoalError while a run is wanted of a deployment's nodes: two would end each other's nodes."""
    if any(group.desired for group in fleet.groups(deployment)):
        _require_ended(deployment, _queue(deployment)[0])


def _require_ended(deployment: Deployment, runs: Sequence[RunRequest]) -> None:
    for each in runs:
        if _end(deployment, each) is None:
            raise ShoalError(
                f"a training uses the nodes of '{deployment.name}': {each.run}; wait until it ends, or stop it by "
                "Ctrl-C where it was started"
            )


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
