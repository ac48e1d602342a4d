"""`shoal dataset info` on damaged files and on datasets on S3."""

import json
from pathlib import Path

import boto3
import h5py
import pytest

from tests.bootstrap.cli.command import Done, shoal_here
from tests.bootstrap.cli.made_datasets import make_dataset


def info(*arguments: str | Path) -> Done:
    return shoal_here("dataset", "info", *arguments)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    make_dataset(tmp_path / "dataset.h5")
    return tmp_path / "dataset.h5"


def text(path: Path) -> None:
    path.write_text("no dataset")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-500])


def older(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["layout_version"] = 1


def broken(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["train/tokens"].id.write_direct_chunk((0, 0), b"no deflate stream")


def changed(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["test/labels"][0] = 1


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (text, "dataset.h5 is not an HDF5 file, or is damaged"),
        (cut, "dataset.h5 is not an HDF5 file, or is damaged"),
        (older, "dataset.h5 has layout version 1, but this version of Shoal reads 2 and 3; recreate it"),
        (broken, "dataset.h5 is damaged: /train/tokens is unreadable"),
        (changed, "dataset.h5 changed after it was created: the digest of its arrays is"),
    ],
)
def test_an_invalid_dataset_is_reported(dataset: Path, harm, sentence: str) -> None:
    harm(dataset)
    done = info(dataset, "--check")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("shoal: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("aws")
def test_a_dataset_on_s3_is_shown_and_checked(dataset: Path) -> None:
    client = boto3.client("s3")
    client.create_bucket(Bucket="pile")
    client.upload_file(str(dataset), "pile", "d/dataset.h5")
    here = json.loads(info(dataset, "--json").stdout)
    for flags in ([], ["--check"]):
        there = json.loads(info("s3://pile/d/dataset.h5", "--json", *flags).stdout)
        assert {**there, "dataset": here["dataset"], "checked": False} == here
    missing = info("s3://pile/d/other.h5")
    assert missing.returncode == 1
    assert "there is no object at s3://pile/d/other.h5" in missing.stderr
    assert "Traceback" not in missing.stderr
