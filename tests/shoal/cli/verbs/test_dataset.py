"""`shoal dataset info` on damaged files and on datasets on S3, and `shoal preprocess` on S3."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import h5py
import pytest

from tests.shoal.cli.command import shoal_here
from tests.shoal.cli.made_datasets import make_dataset

info = partial(shoal_here, "dataset", "info")


@pytest.fixture
def dataset(tmp_path) -> Path:
    make_dataset(tmp_path / "dataset.h5")
    return tmp_path / "dataset.h5"


HARMS: dict[str, Callable[[h5py.File], Any]] = {
    "older": lambda file: file.attrs.modify("layout_version", 1),
    "broken": lambda file: file["train/tokens"].id.write_direct_chunk((0, 0), b"no deflate stream"),
    "changed": lambda file: file["test/labels"].write_direct(1 - file["test/labels"][:]),
}


@pytest.mark.parametrize("harm", ["cut", *HARMS])
def test_an_invalid_dataset_is_reported(dataset, harm, messages) -> None:
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
def test_a_dataset_on_s3_is_shown_and_checked(dataset, messages) -> None:
    client = boto3.client("s3")
    client.create_bucket(Bucket="pile")
    client.upload_file(str(dataset), "pile", "d/dataset.h5")
    here = json.loads(info(dataset, "--json").stdout)
    assert json.loads(info(dataset.parent, "--json").stdout) == here
    for flags in ([], ["--check"]):
        there = json.loads(info("s3://pile/d/dataset.h5", "--json", *flags).stdout)
        assert {**there, "dataset": here["dataset"], "checked": False} == here
    missing = info("s3://pile/d/other.h5")
    assert missing.returncode == 1
    messages.check(missing.stderr.rstrip())


@pytest.mark.usefixtures("aws")
def test_input_and_results_may_be_on_s3() -> None:
    client = boto3.client("s3")
    client.create_bucket(Bucket="pile")
    client.put_object(Bucket="pile", Key="reviews/a.json", Body=b'{"reviewText": "a lamp", "overall": 5}\n' * 20)
    where = ("--input", "s3://pile/reviews/", "--output", "s3://pile/made")
    plan = json.loads(shoal_here("preprocess", "--local", *where, "--dry-run", "--json").stdout)
    assert plan["rows"] == 20
    assert plan["output"] == ["s3://pile/made/DIGEST/dataset.h5", "s3://pile/made/DIGEST/counts.json"]
