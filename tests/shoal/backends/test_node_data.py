"""Tests of the data of a training run on nodes: they are found and uploaded before nodes start."""

from pathlib import Path

import boto3
import pytest

from common.errors import ShoalError
from corpus.dataset import open_dataset
from corpus.dataset_settings import Settings
from corpus.reading.s3 import S3Path
from corpus.reading.sources import Inputs
from shoal.backends.deployment_data import NodeData, upload_files, with_uploaded_files
from shoal.backends.hosts import HostsData
from shoal.runs.run import portable_options
from shoal.runs.sources.texts import TextsSource
from tests.fleet import BUCKET, Fleet
from trainer.config import configured


@pytest.fixture(scope="module", autouse=True)
def bucket(aws):
    boto3.client("s3").create_bucket(Bucket=BUCKET)


def test_local_texts_are_encoded_and_uploaded(aws, tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.runs.sources.texts.default_cache", lambda: tmp_path / "cache")
    lines = "".join(f"__label__{1 + number % 2} text {number}\n" for number in range(300))
    (tmp_path / "a.txt").write_text(lines)
    texts = TextsSource(inputs=Inputs(files=(str(tmp_path / "a.txt"),)), settings=Settings(), max_malformed=0.05)
    config = configured({"model": "lstm", "data": Path("dataset"), "output": tmp_path / "model"})
    prepared = texts.prepare(NodeData(Fleet().deployment), config)
    (made,) = (tmp_path / "cache").glob("texts-*/dataset.h5")
    with open_dataset(made) as opened:
        key = f"datasets/{opened.digest}/dataset.h5"
    assert prepared.request() == {"dataset": f"s3://{BUCKET}/{key}"}
    assert prepared.inputs == texts.inputs.addresses
    assert boto3.client("s3").head_object(Bucket=BUCKET, Key=key)["ContentLength"] == made.stat().st_size


def test_local_files_of_options_are_uploaded_and_those_in_s3_stay(aws, tmp_path):
    for name in ("vectors.txt", "pairs.txt", "msr.questions", "msr.answers"):
        (tmp_path / name).write_text(name)
    files = {"data": Path("dataset"), "output": tmp_path / "model"}
    without = configured({**files, "model": "lstm"})
    starts = without.changed(embeddings=str(tmp_path))
    compares = configured(
        {
            **files,
            "model": "skipgram",
            "similarity": (str(tmp_path / "pairs.txt"), "s3://elsewhere/pairs.txt"),
            "analogy": (str(tmp_path / "msr.questions"),),
        }
    )
    folder = S3Path(BUCKET, "runs/one/sets/")
    for each in (starts, compares):
        upload_files(boto3.client("s3"), portable_options(each), folder)
    found = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=folder.key)["Contents"]
    names = ["msr.answers", "msr.questions", "pairs.txt", "vectors.txt"]
    assert [each["Key"] for each in found] == [f"{folder.key}{name}" for name in names]
    assert with_uploaded_files(portable_options(starts), folder)["embeddings"] == (f"{folder}vectors.txt",)
    there = with_uploaded_files(portable_options(compares), folder)
    assert there["similarity"] == (f"{folder}pairs.txt", "s3://elsewhere/pairs.txt")
    assert there["analogy"] == (f"{folder}msr.questions",)
    assert with_uploaded_files(portable_options(without), folder) == portable_options(without)


def test_hosts_refuse_local_vectors(messages):
    with messages.raises(ShoalError):
        HostsData().check_options({"embeddings": "vectors.bin"})
