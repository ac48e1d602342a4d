"""Addresses in S3 that the nodes of a deployment can read."""

import boto3
import pytest

from bootstrap.aws.deployment import Deployment
from common.errors import DataError, ShoalError
from infra import topology

RAW, DATA = topology.OUTPUT_RAW_BUCKET, topology.OUTPUT_DATA_BUCKET


def deployed(*inputs: str) -> Deployment:
    outputs = {RAW: "my-raw", DATA: "my-data"}
    if inputs:
        outputs[topology.OUTPUT_INPUTS] = " ".join(inputs)
    return Deployment(name="mine", topology="starter", session=boto3.Session(), outputs=outputs)


def test_nodes_can_read_their_buckets_and_the_inputs():
    deployment = deployed("s3://theirs/2024/", "s3://more")
    for address in ("s3://my-raw/x.csv", "s3://my-data/x", "s3://theirs/2024/*.gz", "s3://more/x.csv"):
        assert str(deployment.require_readable(address, RAW, DATA)) == address


@pytest.mark.parametrize("inputs", [(), ("s3://theirs/2023/",)])
def test_another_address_is_refused_with_what_to_add_to_the_topology(inputs):
    with pytest.raises(ShoalError) as caught:
        deployed(*inputs).require_readable("s3://theirs/2024/*.gz", RAW, DATA)
    assert str(caught.value) == (
        "the nodes of the deployment 'mine' cannot read s3://theirs/2024/*.gz; add s3://theirs/2024/ to "
        "`inputs` of its topology 'starter' and deploy again, or copy the data to s3://my-raw/ or s3://my-data/"
    )


@pytest.mark.parametrize(
    ("inputs", "address", "buckets", "under", "sentence"),
    [
        ((), "s3://my-raw/x", (DATA,), ("",), r"cannot read s3://my-raw/x.*, or copy the data to s3://my-data/$"),
        (
            (),
            "s3://my-data/sets/x",
            (DATA,),
            ("runs/", "datasets/"),
            r", or copy the data to s3://my-data/runs/ or s3://",
        ),
        (("s3://more",), "s3://my-data/x", (), ("",), r"cannot read s3://my-data/x; add .* and deploy again$"),
        (("s3://more",), "reviews", (DATA,), ("",), "'reviews' is not an S3 address"),
    ],
)
def test_an_address_that_these_nodes_cannot_read_is_refused(inputs, address, buckets, under, sentence):
    with pytest.raises((DataError, ShoalError), match=sentence):
        deployed(*inputs).require_readable(address, *buckets, under=under)


def test_an_address_below_a_readable_prefix_is_accepted():
    assert deployed().require_readable("s3://my-data/runs/x", DATA, under=("runs/", "datasets/")).key == "runs/x"
