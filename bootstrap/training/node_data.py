"""Brings the data of a training to the nodes: copies a dataset, has texts encoded there that lie in S3, or prepares
where readers leave the words of a text.

Whatever can be found wrong must be found before nodes start, because they cost money.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import filterfalse
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import fetched, names, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.errors import ShoalError
from bootstrap.nodes import shared_folder
from bootstrap.nodes.fleet import GpuNode, NodeWatch
from bootstrap.nodes.run_command import NodeCommand
from bootstrap.progress import Bars
from bootstrap.training.node_scripts import TrainingRun
from bootstrap.training.node_stream import require_readable
from bootstrap.training.raw_input import RawTexts, dataset_of_texts, understand_texts
from corpus.dataset import open_dataset
from corpus.display import printable
from corpus.errors import DataError
from corpus.layout import DATASET_NAME
from corpus.reading.s3 import Place, is_s3, list_objects, place_of, read_text
from corpus.stream.settings import StreamSettings
from corpus.text_request import TextProgress, TextRequest, describe_left_out
from infra import topology

NodeData = Place | TextRequest | StreamSettings
"""A dataset in S3, texts that nodes encode, or text of which readers leave the words."""


def find_data(
    deployment: Deployment, data: str | RawTexts | StreamSettings | None, *, output: Path, bars: Bars
) -> NodeData:
    """A dataset's place in S3, the texts that nodes are to encode, or the text that readers are to read.

    `data` is a dataset's address, or a file here, which is uploaded; None is the deployment's newest dataset. Of texts
    here the dataset is made here, and uploaded; files in `output`, the folder of the results, are no input. Raises
    ShoalError where nodes may not read an address, and where there is no dataset; DataError for texts or a dataset that
    cannot be used.
    """
    if isinstance(data, StreamSettings):
        require_readable(deployment, data)
        return data
    if data is None:
        if (newest := newest_dataset(deployment, bars)) is None:
            raise ShoalError(
                f"the deployment '{deployment.name}' has no dataset yet; make one by: "
                f"shoal preprocess --deployment {deployment.name} --input FILE..."
            )
        return newest
    if isinstance(data, str):
        return _place_of(deployment, data) if is_s3(data) else _upload(deployment, Path(data), bars)
    addresses = data.inputs.addresses
    if here := [address for address in addresses if not is_s3(address)]:
        if len(here) < len(addresses):
            raise ShoalError(f"{here[0]} is a file here, and other input is in S3; copy all of it to one of them")
        return _upload(deployment, dataset_of_texts(data, output=output, cache=None, bars=bars), bars)
    for address in addresses:
        deployment.readable(address)
    return understand_texts(data, output, bars)


def bring_data(
    deployment: Deployment,
    nodes: Sequence[GpuNode],
    run: TrainingRun,
    data: NodeData,
    bars: Bars,
    *,
    readers: Sequence[GpuNode] = (),
) -> None:
    """Bring the data to every node that has disks of its own, and for the others to the share, if there is one.

    The first of `nodes` serves a share by NFS to all others, and to `readers`. Raises ShoalError with the sentence of a
    node that could not do it, or for a node that is gone.
    """
    if isinstance(data, TextRequest):
        s3 = deployment.session.client("s3")
        fetched.put(s3, run.request, run.name, data.to_json(), bars.note)
        # A node that stayed may have reported of texts before.
        objects.delete(s3, run.bucket, [{"Key": run.progress(node).key} for node in nodes])
        bars.stage("read the texts on the nodes", data.plain_bytes, "B")
    elif isinstance(data, StreamSettings):
        fetched.put(deployment.session.client("s3"), run.settings, run.name, data.to_json(), bars.note)
        bars.stage("prepare the nodes", 0)
    else:
        bars.stage("copy the dataset to the nodes", 0)
    if deployment.share == "nfs":
        shared_folder.serve(deployment.session, [*nodes, *readers])
    watch = NodeWatch(deployment, nodes, "; type the same command again")
    for together in (nodes[:1], nodes[1:]) if deployment.share else (nodes,):
        _stage(deployment, together, run, watch, bars)
    if progress := _progress(deployment, run, nodes[0]):
        for sentence in describe_left_out(lines=progress.lines, malformed=progress.malformed, empty=progress.empty):
            bars.note(sentence)


def _stage(deployment: Deployment, nodes: Sequence[GpuNode], run: TrainingRun, watch: NodeWatch, bars: Bars) -> None:
    """Bring the data to these nodes at once; an error or an interrupt ends the commands on all of them."""

    def look() -> None:
        watch.look()
        known = [progress.read for node in nodes if (progress := _progress(deployment, run, node))]
        if known:
            bars.at(min(known))
        bars.tick()

    commands = [NodeCommand(deployment.session, node.instance_id, run.stage(node)) for node in nodes]
    try:
        for command in commands:
            command.wait(look)
    except Abandoned:
        raise
    except BaseException:
        for command in commands:  # on a node that stays it would go on
            with suppress(BotoCoreError, ClientError):
                command.cancel()
        raise


def _progress(deployment: Deployment, run: TrainingRun, node: GpuNode) -> TextProgress | None:
    """What a node has reported for this run; None where it has reported nothing that can be read."""
    if not isinstance(run.dataset, str):
        return None
    found = retrying(partial(read_text, deployment.session.client("s3"), run.progress(node)))
    try:
        return None if found is None else TextProgress.from_json(found)
    except DataError:
        return None


def newest_dataset(deployment: Deployment, bars: Bars) -> Place | None:
    """The deployment's newest dataset; None where it has none."""
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    below = list_objects(deployment.session.client("s3"), Place(bucket, topology.DATASETS_PREFIX))
    found = [each for each in below if each["Key"].endswith(DATASET_NAME)]
    made = [each for each in found if names.is_dataset(each["Key"])]
    if len(made) < len(found):
        others = sorted(filterfalse(names.is_dataset, (each["Key"] for each in found)))
        bars.note(f"left out, because these are not names of Shoal's datasets: {', '.join(map(printable, others))}")
    return Place(bucket, max(made, key=lambda each: each["LastModified"])["Key"]) if made else None


def _place_of(deployment: Deployment, address: str) -> Place:
    place = deployment.readable(address, topology.OUTPUT_DATA_BUCKET)
    names.dataset(place.key)
    if place.key not in objects.sizes(deployment.session.client("s3"), place):
        raise ShoalError(f"there is no dataset at {address}; check the address")
    return place


def _upload(deployment: Deployment, path: Path, bars: Bars) -> Place:
    with open_dataset(path) as opened:
        digest = opened.digest
    if path.name != DATASET_NAME:
        raise ShoalError(f"a dataset to upload must be named {DATASET_NAME}, but this is {path}; rename it")
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    folder = Place(bucket, f"{topology.DATASETS_PREFIX}{digest}/")
    return place_of(objects.upload(deployment.session.client("s3"), [path], folder, bars)[0])
