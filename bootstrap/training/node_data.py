"""Finds what a training on nodes learns from: a dataset, texts that they encode, or text that readers read.

Whatever can be found wrong must be found before nodes start, because they cost money.
"""

from itertools import filterfalse
from pathlib import Path

from bootstrap.aws import names, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.errors import ShoalError
from bootstrap.progress import Bars
from bootstrap.training.node_launch import NodeData
from bootstrap.training.node_stream import require_readable
from bootstrap.training.raw_input import RawTexts, dataset_of_texts, understand_texts
from corpus.dataset import open_dataset
from corpus.display import printable
from corpus.layout import DATASET_NAME
from corpus.reading.s3 import Place, is_s3, list_objects, place_of
from corpus.stream.settings import StreamSettings
from infra import topology


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
