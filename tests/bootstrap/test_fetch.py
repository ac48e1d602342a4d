"""Results of training runs copied out of a data bucket, against the embedded AWS."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from bootstrap import objects
from bootstrap.cli.main import main
from bootstrap.errors import ShoalError
from bootstrap.fetch import fetch, models
from bootstrap.objects import Place
from bootstrap.progress import Bars
from embedded.aws import EmbeddedAws

BUCKET = "data"
ATTACKED = "attacked"
HOSTILE = (
    "runs/../escape",
    "runs/good/../../escape",
    "runs/good//escape",
    "runs//etc/escape",
    "runs/good/.bashrc",
    "runs/.ssh/authorized_keys",
    "runs/good/a\\b",
    "runs/good/\x1b[31mred",
    f"runs/good/{'x' * 300}",
    "runs/good/link/escape",
    "runs/good/file/escape",
    "runs/good/folder",
)
RESULTS = ("model.pt", "record.jsonl", "summary.json", "node-0.log")


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as running:
        yield running


@pytest.fixture(scope="module")
def s3(aws: EmbeddedAws) -> Any:
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
    client.put_object(Bucket=BUCKET, Key="datasets/x/dataset.h5", Body=b"x")
    client.create_bucket(Bucket="empty")
    client.create_bucket(Bucket=ATTACKED)
    for key in (*HOSTILE, "runs/good/model.pt", "runs/good/summary.json"):
        client.put_object(Bucket=ATTACKED, Key=key, Body=b"taken over")
    client.put_object(Bucket=ATTACKED, Key="runs/good/", Body=b"")
    return client


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


def prepared(output: Path) -> Path:
    """The folder of a run with a link that leads out of it, a file, and a folder."""
    run = output / "good"
    (run / "folder").mkdir(parents=True)
    (run / "file").write_text("mine")
    (output.parent / "elsewhere").mkdir()
    (run / "link").symlink_to(output.parent / "elsewhere")
    return run


def outside(output: Path) -> set[str]:
    return {path for path in files(output.parent) if not path.startswith(f"{output.name}/")}


def test_keys_that_lead_out_are_named_and_the_rest_is_fetched(s3: Any, tmp_path: Path) -> None:
    output = tmp_path / "output"
    prepared(output)
    with Bars() as bars:
        done = fetch(s3, ATTACKED, output, bars=bars)
    assert len(done.refused) == len(HOSTILE)
    assert all(sentence.isprintable() for sentence in done.refused)
    assert outside(output) == set()
    assert files(output) == {"good/model.pt", "good/summary.json", "good/file"}
    assert (output / "good" / "file").read_text() == "mine"
    assert (done.runs, done.copied) == (["good"], 2)


def test_a_training_keeps_to_its_output_too(s3: Any, tmp_path: Path) -> None:
    output = prepared(tmp_path / "output")
    came, refused = objects.download(s3, Place(ATTACKED, "runs/good/"), output)
    assert {path.name for path in came} == {"model.pt", "summary.json"}
    assert len(refused) == sum(key.startswith("runs/good/") for key in HOSTILE)
    assert outside(tmp_path / "output") == set()


def test_a_name_that_came_as_a_file_is_no_folder_afterwards(s3: Any, tmp_path: Path) -> None:
    s3.create_bucket(Bucket="twice")
    for key in ("runs/one/a", "runs/one/a/b"):
        s3.put_object(Bucket="twice", Key=key, Body=b"x")
    with Bars() as bars:
        done = fetch(s3, "twice", tmp_path, bars=bars)
    assert files(tmp_path) == {"one/a"}
    assert done.refused == [f"one/a/b: {tmp_path}/one/a is there, and is no folder"]


def test_what_is_refused_is_said_and_the_exit_status_is_1(
    s3: Any, aws: EmbeddedAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    assert main(["fetch", "--bucket", ATTACKED, "--output", str(tmp_path / "output")]) == 1
    told = capsys.readouterr()
    assert "not fetched  good/../../escape: a part of the name begins with a dot" in told.out
    assert "objects of s3://attacked/runs/ can be no file below" in told.err
    assert main(["fetch", "--bucket", BUCKET, "--output", str(tmp_path / "other")]) == 0
