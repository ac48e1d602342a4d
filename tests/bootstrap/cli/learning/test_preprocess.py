"""`shoal preprocess` on S3, and its help. `printed/preprocessings.yaml` has the output for local files."""

import json

import boto3
import pytest

from tests.bootstrap.cli.command import shoal_here


def test_help_shows_every_way_to_give_input() -> None:
    examples = shoal_here("preprocess", "--help").stdout.partition("Examples:")[2]
    for option in ("--test-input", "--classes", "--text-field", "--dry-run", "s3://", "--deployment", "--local"):
        assert option in examples


@pytest.mark.usefixtures("aws")
def test_input_and_results_may_be_on_s3() -> None:
    client = boto3.client("s3")
    client.create_bucket(Bucket="pile")
    client.put_object(Bucket="pile", Key="reviews/a.json", Body=b'{"reviewText": "a lamp", "overall": 5}\n' * 20)
    where = ("--input", "s3://pile/reviews/", "--output", "s3://pile/made")
    found = json.loads(shoal_here("preprocess", "--local", *where, "--dry-run", "--json").stdout)
    assert found["rows"] == 20
    assert found["output"] == ["s3://pile/made/DIGEST/dataset.h5", "s3://pile/made/DIGEST/counts.json"]
