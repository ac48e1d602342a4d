"""One node does all the work: deploy, train on reviews of this machine and of a bucket, destroy."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws
from tests.local_aws.accounts import refused

from corpus.dataset import open_dataset
from shoal.demo.reviews import write_reviews
from shoal.deployments.removal.inventory import inventory, left_over
from tests.command_user import ROOT, CommandUser, install_from_this_machine

pytestmark = pytest.mark.end_to_end

MODEL = ("--model", "fasttext", "--epochs", "5", "--seed", "3")


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reviews") / "reviews.json"
    written = write_reviews(path, texts=600)
    assert written.lines > written.distinct + written.malformed
    return path


@pytest.fixture(scope="module")
def user(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandUser]:
    """Yield a user who has deployed the shipped topology, in an account with reviews in a bucket. Afterwards nothing is
    left."""
    made = CommandUser.prepared(aws, tmp_path_factory.mktemp("life"))
    install_from_this_machine(made, "gpu-inputs")
    boto3.client("s3").create_bucket(Bucket="my-reviews")
    before = inventory()
    shipped = (ROOT / "topologies" / "one-node.yaml").read_text()
    made.write_topology(
        "one-node", shipped.replace("# inputs: [s3://my-reviews/2024/]", "inputs: [s3://my-reviews/2024/]")
    )
    made.cdk_deploy("one-node")
    yield made
    assert "nothing that costs money is left" in made.run("destroy", "one-node", "--yes")[0]
    assert left_over(before, inventory()) == {}
    assert refused(aws) == set()


@pytest.mark.soak
def test_it_trains_on_the_rows_of_local_preprocessing(user: CommandUser, reviews: Path, tmp_path: Path) -> None:
    command = ("train", "--deployment", "one-node", "--input", str(reviews), *MODEL)
    there, said = user.run(*command, "--output", str(tmp_path / "run"), "--json")
    assert re.search(r"[1-9]\d* of [\d,]+ lines are malformed and were skipped", said)
    user.run("preprocess", "--local", "--input", str(reviews), "--output", str(tmp_path / "data"))
    data = tmp_path / "data" / "dataset.h5"
    here, _ = user.run("train", "--local", "--data", str(data), *MODEL, "--output", str(tmp_path / "here"), "--json")
    found, wanted = json.loads(there), json.loads(here)
    assert found["rows"] == wanted["rows"]
    assert found["accuracy"] == pytest.approx(wanted["accuracy"], abs=1e-6)
    with open_dataset(data) as dataset:
        assert len(dataset.train) + len(dataset.test) == 600
    raw = user.stack_outputs("one-node")["RawBucket"]
    keys = [each["Key"] for each in boto3.client("s3").list_objects_v2(Bucket=raw)["Contents"]]
    assert [re.sub("[0-9a-f]{12}", "NAME", key) for key in keys] == ["reviews/NAME/reviews.json"]
