"""What a training on nodes learns from: what is found and uploaded before they start."""

from dataclasses import replace
from pathlib import Path

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws

from bootstrap.hosts.hosts_file import read_hosts
from bootstrap.progress import Bars
from bootstrap.training.places.bucket_place import bring, brought
from bootstrap.training.places.deployment import OnDeployment
from bootstrap.training.places.hosts import OnHosts
from bootstrap.training.sources.dataset import DatasetSource
from bootstrap.training.sources.texts import TextsSource
from common.errors import ShoalError
from corpus.dataset import open_dataset
from corpus.dataset_settings import Settings
from corpus.reading.s3 import S3Path
from corpus.reading.sources import Inputs
from tests.fleet import BUCKET, Fleet
from trainer.config import TrainConfig


@pytest.fixture(scope="module", autouse=True)
def bucket(aws: EmbeddedAws) -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)


def test_texts_here_are_encoded_here_and_uploaded(aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.classification.data.default_cache", lambda: tmp_path / "cache")
    lines = "".join(f"__label__{1 + number % 2} text {number}\n" for number in range(300))
    (tmp_path / "a.txt").write_text(lines)
    texts = TextsSource(inputs=Inputs(files=(str(tmp_path / "a.txt"),)), settings=Settings(), max_malformed=0.05)
    with Bars() as bars:
        config = TrainConfig(data=Path("dataset"), output=tmp_path / "model")
        prepared = texts.prepare(OnDeployment(Fleet().deployment), config, bars)
    (made,) = (tmp_path / "cache").glob("texts-*/dataset.h5")
    with open_dataset(made) as opened:
        key = f"datasets/{opened.digest}/dataset.h5"
    assert prepared.request() == {"dataset": f"s3://{BUCKET}/{key}"}
    assert prepared.inputs == texts.inputs.addresses
    assert boto3.client("s3").head_object(Bucket=BUCKET, Key=key)["ContentLength"] == made.stat().st_size


def test_files_that_options_name_are_brought_into_the_run_and_those_in_s3_stay(aws, tmp_path: Path) -> None:
    for name in ("vectors.txt", "pairs.txt", "msr.questions", "msr.answers"):
        (tmp_path / name).write_text(name)
    without = TrainConfig(data=Path("dataset"), output=tmp_path / "model")
    starts = replace(without, embeddings=str(tmp_path))
    compares = replace(
        without,
        model="skipgram",
        similarity=(str(tmp_path / "pairs.txt"), "s3://elsewhere/pairs.txt"),
        analogy=(str(tmp_path / "msr.questions"),),
    )
    folder = S3Path(BUCKET, "runs/one/sets/")
    with Bars() as bars:
        for each in (starts, compares):
            bring(boto3.client("s3"), each, folder, bars)
    found = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=folder.key)["Contents"]
    names = ["msr.answers", "msr.questions", "pairs.txt", "vectors.txt"]
    assert [each["Key"] for each in found] == [f"{folder.key}{name}" for name in names]
    assert brought(starts, folder).embeddings == f"{folder}vectors.txt"
    there = brought(compares, folder)
    assert there.similarity == (f"{folder}pairs.txt", "s3://elsewhere/pairs.txt")
    assert there.analogy == (f"{folder}msr.questions",)
    assert brought(without, folder) == without


def test_hosts_do_not_start_from_vectors_that_they_do_not_have(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("folder=s3://somewhere\n10.0.0.1\n")
    place = OnHosts(read_hosts(tmp_path / "hosts.txt"))
    config = TrainConfig(data=Path("dataset"), output=tmp_path, embeddings="vectors.bin")
    with Bars() as bars, pytest.raises(ShoalError, match=r"--embeddings names vectors\.bin, which hosts do not have"):
        place.prepare(DatasetSource("dataset"), config, bars)
