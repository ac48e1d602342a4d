"""Text for vectors of words on a deployment: what its nodes are asked to read, and who of them reads.

Whatever can be found wrong must be found before nodes start, because they cost money. The nodes reach nothing but S3,
and of that only what the topology names as its inputs: neither this machine's files nor anybody's sockets.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bootstrap.aws import objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.names import SETS
from bootstrap.errors import ShoalError
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode
from bootstrap.progress import Bars
from bootstrap.training.node_scripts import STREAM, TrainingRun
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


def as_before(deployment: Deployment, run: TrainingRun, settings: StreamSettings) -> StreamSettings:
    """The settings of the stream of a run that goes on: as many readers as before share its files.

    Raises ShoalError where the run had others, or left none that can be read.
    """
    written = read_text(deployment.session.client("s3"), run.settings)
    if written is None:
        raise ShoalError(f"{run.folder} is no run on a text: it has no {run.settings}; leave out --resume to start one")
    try:
        before = StreamSettings.from_json(written)
    except DataError as error:
        raise ShoalError(f"{run.settings} has no settings of a stream: {error}; leave out --resume") from error
    if other := differing(before, replace(settings, readers=before.readers)):
        raise ShoalError(f"the run in {run.folder} has {other}; resume with what it was started with")
    return before


def on_nodes(settings: StreamSettings, nodes: Sequence[GpuNode], readers: Sequence[GpuNode]) -> list[GpuNode]:
    """The node of each reader: those that read, in turn, or else the first that trains."""
    where = readers or nodes[:1]
    return [where[number % len(where)] for number in range(settings.readers)]


def read_command(reader: int, readers: int) -> Sequence[str]:
    """What Python is told for a reader, as `ReaderCommand` says."""
    return ["-m", "corpus.stream", "--stream", STREAM, "--reader", f"{reader}/{readers}"]


def require_sets(deployment: Deployment, config: TrainConfig) -> None:
    """Raise ShoalError for a set of similarity or analogies in S3 that the nodes may not read."""
    for address in filter(is_s3, (*config.similarity, *config.analogy)):
        deployment.readable(
            address, topology.OUTPUT_DATA_BUCKET, under=(topology.RUNS_PREFIX, topology.DATASETS_PREFIX)
        )


def with_sets(deployment: Deployment, run: TrainingRun, config: TrainConfig, bars: Bars) -> TrainConfig:
    """`config` with its sets where nodes can read them: those of this machine are uploaded to the run's folder."""
    return replace(
        config,
        similarity=tuple(_brought(deployment, run, each, bars) for each in config.similarity),
        analogy=tuple(_brought(deployment, run, each, bars) for each in config.analogy),
    )


def _brought(deployment: Deployment, run: TrainingRun, address: str, bars: Bars) -> str:
    if is_s3(address):
        return address
    path = Path(address)
    beside = path.with_suffix(_ANSWERS.get(path.suffix, path.suffix))
    folder = Place(run.bucket, f"{run.folder.key}{SETS}")
    files = [path, beside] if beside != path and beside.exists() else [path]
    return objects.upload(deployment.session.client("s3"), files, folder, bars)[0]
