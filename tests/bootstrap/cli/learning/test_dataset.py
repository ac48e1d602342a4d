"""`shoal dataset info` on damaged files and on datasets on S3."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import h5py
import pytest

from tests.bootstrap.cli.command import shoal_here
from tests.bootstrap.cli.made_datasets import make_dataset
from tests.messages import Messages

info = partial(shoal_here, "dataset", "info")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    make_dataset(tmp_path / "dataset.h5")
    return tmp_path / "dataset.h5"


HARMS: dict[str, Callable[[h5py.File], Any]] = {
    "older": lambda file: file.attrs.modify("layout_version", 1),
    "broken": lambda file: file["train/tokens"].id.write_direct_chunk((0, 0), b"no deflate stream"),
    "changed": lambda file: file["test/labels"].write_direct(1 - file["test/labels"][:]),
}


@pytest.mark.parametrize("harm", ["cut", *HARMS])
def test_an_invalid_dataset_is_reported(dataset: Path, harm: str, messages: Messages) -> None:
    if harm == "cut":
        whole = dataset.read_bytes()
        dataset.write_bytes(whole[:-500])
        for size in (len(whole), len(whole) - 500):
            messages.hide(size, "SIZE")
    else:
        with h5py.File(dataset, "r+") as file:
            HARMS[harm](file)
    done = info(dataset, "--check")
    assert (done.returncode, done.stdout) == (1, "")
    messages.check(done.stderr.rstrip())


@pytest.mark.usefixtures("aws")
def test_a_dataset_on_s3_is_shown_and_checked(dataset: Path, messages: Messages) -> None:
    client = boto3.client("s3")
    client.create_bucket(Bucket="pile")
    client.upload_file(str(dataset), "pile", "d/dataset.h5")
    here = json.loads(info(dataset, "--json").stdout)
    for flags in ([], ["--check"]):
        there = json.loads(info("s3://pile/d/dataset.h5", "--json", *flags).stdout)
        assert {**there, "dataset": here["dataset"], "checked": False} == here
    missing = info("s3://pile/d/other.h5")
    assert missing.returncode == 1
    messages.check(missing.stderr.rstrip())
