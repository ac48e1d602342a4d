"""Results of training runs copied out of a data bucket, against the embedded AWS."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from bootstrap.errors import ShoalError
from bootstrap.fetch import fetch, models
from bootstrap.progress import Bars
from embedded.aws import EmbeddedAws

BUCKET = "data"
RESULTS = ("model.pt", "record.jsonl", "summary.json", "node-0.log")


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as aws:
        client = boto3.client(
            "s3",
            endpoint_url=aws.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        client.create_bucket(Bucket=BUCKET)
        for name in (*RESULTS, "checkpoints/last.pt"):
            client.put_object(Bucket=BUCKET, Key=f"runs/one/{name}", Body=name.encode())
        client.put_object(Bucket=BUCKET, Key="runs/two/record.jsonl", Body=b"{}")
        client.put_object(Bucket=BUCKET, Key="runs/two/../../escape", Body=b"x")
        client.put_object(Bucket=BUCKET, Key="datasets/x/dataset.h5", Body=b"x")
        client.create_bucket(Bucket="empty")
        yield client


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_results_of_all_runs_come_in_a_folder_each_without_checkpoints(s3: Any, tmp_path: Path) -> None:
    with Bars() as bars:
        done = fetch(s3, BUCKET, tmp_path, bars=bars)
    assert files(tmp_path) == {*(f"one/{name}" for name in RESULTS), "two/record.jsonl"}
    assert (tmp_path / "one" / "model.pt").read_bytes() == b"model.pt"
    assert (done.runs, done.copied, done.present) == (["one", "two"], 5, 0)


def test_what_is_there_is_left_and_what_differs_comes_again(s3: Any, tmp_path: Path) -> None:
    with Bars() as bars:
        fetch(s3, BUCKET, tmp_path, bars=bars)
        (tmp_path / "one" / "model.pt").write_bytes(b"half")
        os.utime(tmp_path / "one" / "summary.json", (1, 1))
        done = fetch(s3, BUCKET, tmp_path, bars=bars)
    assert (done.copied, done.present) == (2, 3)
    assert (tmp_path / "one" / "model.pt").read_bytes() == b"model.pt"


def test_one_run_comes_alone(s3: Any, tmp_path: Path) -> None:
    with Bars() as bars:
        fetch(s3, BUCKET, tmp_path, bars=bars, run="two")
    assert files(tmp_path) == {"two/record.jsonl"}


def test_a_run_that_is_not_there_is_said_with_those_that_are(s3: Any, tmp_path: Path) -> None:
    with Bars() as bars, pytest.raises(ShoalError, match=r"no run 'three' in s3://data/runs/; there are: one, two"):
        fetch(s3, BUCKET, tmp_path, bars=bars, run="three")


def test_a_bucket_without_runs_gives_nothing(s3: Any, tmp_path: Path) -> None:
    with Bars() as bars:
        assert fetch(s3, "empty", tmp_path, bars=bars).runs == []


def test_only_runs_with_a_model_count_as_models(s3: Any) -> None:
    assert models(s3, BUCKET) == ["one"]
