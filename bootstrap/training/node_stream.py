"""Text for word embeddings on a deployment: what its nodes are asked to read.

Whatever can be found wrong must be found before nodes start, because they cost money. The nodes reach nothing but S3,
and of that only what the topology names as its inputs: neither this machine's files nor anybody's sockets.
"""

from dataclasses import replace
from pathlib import Path

from bootstrap.agent.documents import REQUEST_NAME, RunRequest
from bootstrap.aws import objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.names import SETS
from bootstrap.errors import ShoalError
from bootstrap.nodes import fleet
from bootstrap.progress import Bars
from bootstrap.training.node_launch import NodeLaunch
from corpus.errors import DataError
from corpus.reading.inputs.finding import files_for_now
from corpus.reading.s3 import Place, is_s3, read_text
from corpus.stream.settings import StreamSettings, differing, is_socket
from infra import topology
from trainer.config import TrainConfig

_ANSWERS = {".questions": ".answers"}
"""Of a set of analogies in MSR's format the other file."""


def require_readable(deployment: Deployment, settings: StreamSettings) -> None:
    """Raise ShoalError or DataError for text that the deployment's nodes cannot read, or its ranks would not see."""
    for address in settings.sources:
        if is_socket(address):
            raise ShoalError(
                f"the nodes of a deployment cannot reach {address}, as their network leads to S3 alone; have its "
                "sender write objects into a prefix there, and give that with --follow"
            )
        if not is_s3(address):
            raise ShoalError(
                f"{address} is on this machine, and the nodes of a deployment read text from S3 alone; upload it, such "
                f"as by `aws s3 cp`, to an address within the `inputs` of the topology '{deployment.topology}', and "
                "give that"
            )
        deployment.readable(address)
        if not files_for_now(address) and not settings.follow:
            raise DataError(f"there are no files at {address}; check the address, or give --follow to wait for some")
    nodes = sum(group.size for group in fleet.groups(deployment))
    if nodes > 1 and deployment.share is None:
        raise ShoalError(
            f"the {nodes} nodes of the deployment '{deployment.name}' have no folder in which all of them would find "
            f"the words; write `share: nfs` or `share: efs` in the file of its topology '{deployment.topology}', and "
            "deploy again"
        )


def as_before(launch: NodeLaunch, settings: StreamSettings) -> StreamSettings:
    """The settings of the stream of a run that goes on: as many readers as before share its files.

    Raises ShoalError where the run had others, or left none that can be read.
    """
    place = Place(launch.bucket, launch.folder.key + REQUEST_NAME)
    written = read_text(launch.deployment.session.client("s3"), place)
    try:
        before = RunRequest.from_json(written).stream if written is not None else None
    except DataError as error:
        raise ShoalError(f"{place} is no request of a run: {error}; leave out --resume") from error
    if before is None:
        raise ShoalError(f"{launch.folder} is no run on a text; leave out --resume to start one")
    if other := differing(before, replace(settings, readers=before.readers)):
        raise ShoalError(f"the run in {launch.folder} has {other}; resume with what it was started with")
    return before


def require_sets(deployment: Deployment, config: TrainConfig) -> None:
    """Raise ShoalError for a set of similarity or analogies in S3 that the nodes may not read."""
    for address in filter(is_s3, (*config.similarity, *config.analogy)):
        deployment.readable(
            address, topology.OUTPUT_DATA_BUCKET, under=(topology.RUNS_PREFIX, topology.DATASETS_PREFIX)
        )


def with_sets(launch: NodeLaunch, config: TrainConfig, bars: Bars) -> TrainConfig:
    """`config` with its sets where nodes can read them: those of this machine are uploaded to the run's folder."""
    return replace(
        config,
        similarity=tuple(_brought(launch, each, bars) for each in config.similarity),
        analogy=tuple(_brought(launch, each, bars) for each in config.analogy),
    )


def _brought(launch: NodeLaunch, address: str, bars: Bars) -> str:
    if is_s3(address):
        return address
    path = Path(address)
    beside = path.with_suffix(_ANSWERS.get(path.suffix, path.suffix))
    folder = Place(launch.bucket, f"{launch.folder.key}{SETS}")
    files = [path, beside] if beside != path and beside.exists() else [path]
    return objects.upload(launch.deployment.session.client("s3"), files, folder, bars)[0]
