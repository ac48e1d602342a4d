"""Which addresses of S3 the nodes of a deployment may read."""

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


def test_nodes_read_their_own_buckets_and_the_inputs() -> None:
    deployment = deployed("s3://theirs/2024/", "s3://more")
    for address in ("s3://my-raw/x.csv", "s3://my-data/x", "s3://theirs/2024/*.gz", "s3://more/x.csv"):
        assert str(deployment.readable(address, RAW, DATA)) == address


@pytest.mark.parametrize("inputs", [(), ("s3://theirs/2023/",)])
def test_an_address_outside_is_refused_with_what_to_add_to_the_topology(inputs: tuple[str, ...]) -> None:
    with pytest.raises(ShoalError) as caught:
        deployed(*inputs).readable("s3://theirs/2024/*.gz", RAW, DATA)
    assert str(caught.value) == (
        "the nodes of the deployment 'mine' may not read s3://theirs/2024/*.gz; add s3://theirs/2024/ to `inputs` in "
        "the file of its topology 'starter' and deploy again, or copy the data to s3://my-raw/ or s3://my-data/"
    )


@pytest.mark.parametrize(
    ("inputs", "address", "buckets", "under", "sentence"),
    [
        ((), "s3://my-raw/x", (DATA,), ("",), r"may not read s3://my-raw/x.*, or copy the data to s3://my-data/$"),
        (
            (),
            "s3://my-data/sets/x",
            (DATA,),
            ("runs/", "datasets/"),
            r", or copy the data to s3://my-data/runs/ or s3://",
        ),
        (("s3://more",), "s3://my-data/x", (), ("",), r"may not read s3://my-data/x; add .* and deploy again$"),
        (("s3://more",), "reviews", (DATA,), ("",), "'reviews' is not an S3 address"),
    ],
)
def test_what_these_nodes_do_not_read_is_refused(
    inputs: tuple[str, ...], address: str, buckets: tuple[str, ...], under: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises((DataError, ShoalError), match=sentence):
        deployed(*inputs).readable(address, *buckets, under=under)


def test_a_prefix_in_which_nodes_read_is_accepted() -> None:
    assert deployed().readable("s3://my-data/runs/x", DATA, under=("runs/", "datasets/")).key == "runs/x"
