"""Fixtures: a bucket with a dataset for nodes of the embedded AWS, and two nodes."""

import zipfile

import boto3
import pytest

from bootstrap.progress import Bars
from corpus.reading.s3 import place_of
from tests.bootstrap.training.on_nodes import DATASET, ROOT, made_dataset
from tests.fleet import BUCKET, Fleet, pack_code


@pytest.fixture(scope="module")
def node_bucket(aws):
    """Create a bucket with a dataset and the payload of nodes."""
    s3 = boto3.Session().client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.upload_file(str(made_dataset(aws.folder / "dataset.h5")), BUCKET, place_of(DATASET).key)
    with zipfile.ZipFile(aws.folder / "code.zip", "w") as archive:
        pack_code(archive)
    s3.upload_file(str(aws.folder / "code.zip"), BUCKET, "code.zip")
    s3.upload_file(str(ROOT / "build" / "wheels" / "gpu.zip"), BUCKET, "wheels.zip")
    s3.upload_file(str(ROOT / "bootstrap" / "nodes" / "gpu" / "boot.sh"), BUCKET, "boot.sh")


@pytest.fixture(scope="module")
def nodes(aws):
    """Return two nodes without agents."""
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    pair = Fleet(share="nfs").add("pair", "g5.xlarge", 2, start="deploy")
    with Bars() as bars:
        return pair.scaled_up(bars)
