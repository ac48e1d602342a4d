"""A launch of a run on a deployment's nodes: the request that their agents follow, and what they tell of it."""

import random
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from bootstrap.agent import documents
from bootstrap.agent.documents import REQUEST_NAME, Member, NodeStatus, RunRequest
from bootstrap.aws import fetched, names, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import retrying
from bootstrap.nodes.fleet import GpuNode
from bootstrap.progress import Bars
from common.errors import DataError, ShoalError
from corpus.reading.s3 import S3Path, read_text
from infra import topology
from trainer.command_line import as_words
from trainer.config import TrainConfig

_PORTS = range(20_000, 30_000)
_SET_BY_NODES = ("data", "output", "cache", "trust_network")


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

    @property
    def request(self) -> RunRequest:
        """The request; `start` makes it."""
        assert self._request is not None
        return self._request

    def start(self, nodes: Sequence[GpuNode], config: TrainConfig, learnt: Mapping[str, Any], bars: Bars) -> None:
        """Ask the nodes, those that train and after them those that read, for this training; `learnt`: the fields of
        the request that say what it learns from."""
        options = {name: words for name, words in as_words(config).items() if name not in _SET_BY_NODES}
        self._request = RunRequest(
            run=self.run,
            token=secrets.token_hex(4),
            members=tuple(Member(instance=each.instance_id, address=each.address, gpus=each.gpus) for each in nodes),
            share=self.deployment.share,
            options=options,
            port=random.choice(_PORTS),  # noqa: S311
            **learnt,
        )
        copy = S3Path(self.bucket, self.folder.key + REQUEST_NAME)
        fetched.put(self._s3, copy, self.run, self._request.to_json(), bars.note)
        self._write()

    def ask_to_stop(self) -> None:
        """Ask all nodes to stop with a checkpoint."""
        self._request = replace(self.request, stop=True)
        retrying(self._write)

    def request_before(self) -> RunRequest:
        """The request of a run that goes on. Raises ShoalError where it left none that can be read."""
        place = S3Path(self.bucket, self.folder.key + REQUEST_NAME)
        try:
            return RunRequest.from_json(read_text(self._s3, place) or "")
        except DataError as error:
            raise ShoalError(f"{place} is no request of a run: {error}; leave out --resume") from error

    def forget(self) -> None:
        """Remove the request: nodes that stay have nothing more to do."""
        objects.delete(self._s3, self.bucket, [{"Key": documents.request_key(self.deployment.name)}])

    def statuses(self) -> Mapping[str, NodeStatus]:
        """What the nodes have told of this launch, by instance. Others may write there, too: what is no status does not
        count."""
        found: dict[str, NodeStatus] = {}
        for each in self.request.members:
            place = S3Path(self.bucket, documents.status_key(each.instance))
            text = retrying(partial(read_text, self._s3, place))
            with suppress(DataError):
                if text is not None and (status := NodeStatus.from_json(text)).token == self.request.token:
                    found[each.instance] = status
        return found

    def _write(self) -> None:
        place = S3Path(self.bucket, documents.request_key(self.deployment.name))
        objects.put(self._s3, {str(place): self.request.to_json().encode()})
