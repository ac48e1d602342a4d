"""A launch of a run on a deployment's nodes, in its data bucket."""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from bootstrap.agent import documents
from bootstrap.agent.documents import REQUEST_NAME, RunRequest
from bootstrap.agent.store import Bucket
from bootstrap.aws import fetched, names
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import retrying
from bootstrap.nodes import fleet
from bootstrap.nodes.scale_up import READY_SECONDS
from bootstrap.progress import Bars
from bootstrap.training.places.run_launch import RequestedRuns, RunLaunch, Wishes
from common.errors import DataError, ShoalError
from corpus.reading.s3 import S3Path, head_if_there, read_text
from infra import topology
from trainer.command_line import as_words
from trainer.config import TrainConfig

_SET_BY_NODES = ("data", "output", "cache", "trust_network")


class NodeLaunch(RunLaunch):
    """A launch of a run, from its request to what is fetched."""

    when_silent = "if its deployment is of an earlier version of Shoal, deploy it again"

    def __init__(self, deployment: Deployment, run: str) -> None:
        super().__init__(requested_runs(deployment), run)
        self.deployment, self.bucket = deployment, _bucket(deployment)
        self._began = datetime.now(UTC)
        self._s3 = deployment.session.client("s3")

    @property
    def folder(self) -> S3Path:
        """The folder of the run's results."""
        return S3Path(self.bucket, f"{topology.RUNS_PREFIX}{self.run}/")

    @property
    def began(self) -> datetime:
        """When it was asked for; of one that an earlier command has begun, the time in the run's name."""
        if not self.found:
            return self._began
        return datetime.strptime(self.run.rpartition(".")[2].partition("-")[0], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)

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
            replace_slow=wishes.replace_slow,
            keep=wishes.keep,
            max_dollars=wishes.max_dollars,
            share=self.deployment.share,
            options=options_of(config),
            **learnt,
        )
        if not self.put_in(wanted, wishes, anew=config.force):
            bars.note(f"following run {self.run}, which the same command has begun")
            return
        copy = S3Path(self.bucket, self.folder.key + REQUEST_NAME)
        fetched.put(self._s3, copy, self.run, wanted.to_json(), bars.note)

    def require_free(self, going: Sequence[RunRequest]) -> None:
        _require_no_nodes(self.deployment, going)

    def keeps_nodes(self) -> bool:
        """Whether the nodes stay after it: they are to, or are wanted for another run."""
        with suppress(ShoalError):  # of requests that cannot be read no node does anything
            others = [each for each in self.wanted.read() if each.token != self.request.token]
            return self.request.keep or bool(self.wanted.going(others))
        return False

    def request_before(self) -> RunRequest:
        """The request of a run that goes on. Raises ShoalError where it left none that can be read."""
        place = S3Path(self.bucket, self.folder.key + REQUEST_NAME)
        try:
            return RunRequest.from_json(read_text(self._s3, place) or "")
        except DataError as error:
            raise ShoalError(f"{place} is no request of a run: {error}; leave out --resume") from error

    def first_attempt_at(self) -> datetime | None:
        """When the nodes agreed on the first attempt, by S3's own clock; None before that."""
        for first in self.attempts()[:1]:
            place = S3Path(self.bucket, documents.attempt_key(self.run, first.number))
            if (head := retrying(partial(head_if_there, self._s3, place))) is not None:
                return head["LastModified"]
        return None


def options_of(config: TrainConfig) -> dict[str, tuple[str, ...]]:
    return {name: words for name, words in as_words(config).items() if name not in _SET_BY_NODES}


def requested_runs(deployment: Deployment) -> RequestedRuns:
    store = Bucket(_bucket(deployment), deployment.session.client("s3"), call=retrying)
    return RequestedRuns(store, deployment.name)


def queue_path(deployment: Deployment) -> S3Path:
    return S3Path(_bucket(deployment), documents.request_key(deployment.name))


def _bucket(deployment: Deployment) -> str:
    return names.bucket(deployment.output(topology.OUTPUT_DATA_BUCKET))


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
