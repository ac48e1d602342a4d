"""Addresses in S3 that the nodes of a deployment can read."""

import boto3
import pytest

from common import names
from common.errors import DataError, ShoalError
from shoal.aws.deployment import Deployment

RAW, DATA = names.OUTPUT_RAW_BUCKET, names.OUTPUT_DATA_BUCKET


def deployed(*inputs):
    outputs = {RAW: "my-raw", DATA: "my-data"}
    if inputs:
        outputs[names.OUTPUT_INPUTS] = " ".join(inputs)
    return Deployment(name="mine", topology="starter", session=boto3.Session(), outputs=outputs)


def test_nodes_can_read_their_buckets_and_the_inputs():
    deployment = deployed("s3://theirs/2024/", "s3://more")
    for address in ("s3://my-raw/x.csv", "s3://my-data/x", "s3://theirs/2024/*.gz", "s3://more/x.csv"):
        assert str(deployment.require_readable(address, RAW, DATA)) == address
    assert deployment.require_readable("s3://my-data/runs/x", DATA, under=("runs/", "datasets/")).key == "runs/x"


@pytest.mark.parametrize(
    ("inputs", "address", "buckets", "under"),
    [
        pytest.param((), "s3://theirs/2024/*.gz", (RAW, DATA), ("",), id="no inputs"),
        pytest.param(("s3://theirs/2023/",), "s3://theirs/2024/*.gz", (RAW, DATA), ("",), id="other inputs"),
        pytest.param((), "s3://my-raw/x", (DATA,), ("",), id="another bucket"),
        pytest.param((), "s3://my-data/sets/x", (DATA,), ("runs/", "datasets/"), id="another folder"),
        pytest.param(("s3://more",), "s3://my-data/x", (), ("",), id="no bucket"),
        pytest.param(("s3://more",), "reviews", (DATA,), ("",), id="no address"),
    ],
)
def test_another_address_is_refused_with_what_to_add_to_the_topology(inputs, address, buckets, under, messages):
    with messages.raises((DataError, ShoalError)):
        deployed(*inputs).require_readable(address, *buckets, under=under)
