"""What a training on nodes learns from: what is found and uploaded before they start."""

from pathlib import Path

import boto3
import pytest

from bootstrap.progress import Bars
from bootstrap.training.places.deployment import OnDeployment
from bootstrap.training.sources.texts import TextsSource
from corpus.dataset import open_dataset
from corpus.dataset_settings import Settings
from corpus.reading.sources import Inputs
from embedded.aws import EmbeddedAws
from tests.fleet import BUCKET, Fleet
from trainer.config import TrainConfig


@pytest.fixture(scope="module", autouse=True)
def bucket(aws: EmbeddedAws) -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)


def test_texts_here_are_encoded_here_and_uploaded(aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.classification.data.default_cache", lambda: tmp_path / "cache")
    lines = "".join(f"__label__{1 + number % 2} text {number}\n" for number in range(300))
    (tmp_path / "a.txt").write_text(lines)
    texts = TextsSource(
        inputs=Inputs(files=(str(tmp_path / "a.txt"),)), settings=Settings(), max_malformed=0.05, allow_damaged=False
    )
    with Bars() as bars:
        config = TrainConfig(data=Path("dataset"), output=tmp_path / "model")
        prepared = texts.prepare(OnDeployment(Fleet().deployment), config, bars)
    (made,) = (tmp_path / "cache").glob("texts-*/dataset.h5")
    with open_dataset(made) as opened:
        key = f"datasets/{opened.digest}/dataset.h5"
    assert prepared.request() == {"dataset": f"s3://{BUCKET}/{key}"}
    assert prepared.inputs == texts.inputs.addresses
    assert boto3.client("s3").head_object(Bucket=BUCKET, Key=key)["ContentLength"] == made.stat().st_size
