"""Fixtures: a bucket with a dataset for nodes of the embedded AWS, and two nodes."""

import boto3
import pytest

from corpus.reading.s3 import place_of
from tests.fleet import BUCKET, Fleet
from tests.shoal.backends.on_nodes import DATASET, made_dataset


@pytest.fixture(scope="module")
def node_bucket(aws):
    """Create a bucket with a dataset."""
    s3 = boto3.Session().client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.upload_file(str(made_dataset(aws.folder / "dataset.h5")), BUCKET, place_of(DATASET).key)


@pytest.fixture(scope="module")
def nodes(aws):
    """Return two nodes without agents."""
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    pair = Fleet(share="nfs").add("pair", "g5.xlarge", 2, start="deploy")
    return pair.scaled_up()
