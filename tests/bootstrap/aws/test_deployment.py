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


def test_a_bucket_of_the_deployment_that_these_nodes_do_not_read_is_refused() -> None:
    with pytest.raises(ShoalError, match=r"may not read s3://my-raw/x.*, or copy the data to s3://my-data/$"):
        deployed().readable("s3://my-raw/x", DATA)


def test_of_a_bucket_in_which_nodes_read_some_prefixes_other_addresses_are_refused() -> None:
    assert deployed().readable("s3://my-data/runs/x", DATA, under=("runs/", "datasets/")).key == "runs/x"
    with pytest.raises(ShoalError, match=r", or copy the data to s3://my-data/runs/ or s3://my-data/datasets/$"):
        deployed().readable("s3://my-data/sets/x", DATA, under=("runs/", "datasets/"))


def test_what_is_read_within_inputs_alone_is_not_to_be_copied_into_the_deployments_buckets() -> None:
    with pytest.raises(ShoalError, match=r"may not read s3://my-data/x; add .* and deploy again$"):
        deployed("s3://more").readable("s3://my-data/x")


def test_an_address_that_is_not_of_s3_is_refused() -> None:
    with pytest.raises(DataError, match="'reviews' is not an address of S3"):
        deployed("s3://more").readable("reviews", DATA)
