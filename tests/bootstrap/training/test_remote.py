"""Tests of preparing a training run on nodes of the embedded AWS."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bootstrap.progress import Bars
from bootstrap.training.places import bucket_place
from bootstrap.training.places.bucket_place import BucketPlace
from bootstrap.training.sources.dataset import PreparedDataset
from common.errors import DataError, ShoalError, TrainingError
from tests.bootstrap.training.on_nodes import DATASET
from tests.fleet import BUCKET, Fleet
from tests.trained import predicted_on, train_on
from trainer.config import TrainConfig

pytestmark = pytest.mark.usefixtures("node_bucket")


def test_the_newest_dataset_is_in_the_folder_that_changed_last(monkeypatch):
    hours = {f"{'1' * 32}/dataset.h5": 1, f"{'1' * 32}/{'a' * 12}.json": 3, f"{'2' * 32}/dataset.h5": 2}
    listed = [
        {"Key": f"datasets/{name}", "LastModified": datetime(2026, 1, 1, hour, tzinfo=UTC)}
        for name, hour in hours.items()
    ]
    monkeypatch.setattr(bucket_place, "list_objects", lambda *_: iter(listed))
    place: Any = SimpleNamespace(_s3=None, _bucket=BUCKET)
    assert BucketPlace.newest_dataset(place) == f"s3://{BUCKET}/datasets/{'1' * 32}/dataset.h5"


@pytest.mark.parametrize("resume", [False, True])
def test_a_finished_model_is_not_replaced_and_no_node_is_started_for_it(aws, tmp_path, resume):
    one = Fleet().add("one", "g5.xlarge", 1)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("finished")
    config = TrainConfig(data=Path("dataset"), output=tmp_path, resume=resume)
    message = "would replace the finished model" if resume else "is a finished model; add --force"
    with Bars() as bars, pytest.raises(TrainingError, match=message):
        train_on(one.deployment, config, DATASET, bars)
    assert one.scaling.describe_scaling_activities(AutoScalingGroupName=f"{one.name}-one")["Activities"] == []


def test_unreadable_vectors_are_refused_before_any_node_starts(aws, tmp_path):
    one = Fleet().add("one", "g5.xlarge", 1)
    refused = {"vectors.bin": "cannot read vectors.bin", "s3://elsewhere/v.bin": "cannot read s3://else"}
    for address, message in refused.items():
        config = TrainConfig(data=Path("dataset"), output=tmp_path, embeddings=address)
        with Bars() as bars, pytest.raises((DataError, ShoalError), match=message):
            train_on(one.deployment, config, DATASET, bars)
    assert one.scaling.describe_scaling_activities(AutoScalingGroupName=f"{one.name}-one")["Activities"] == []


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"model": "fasttext"}, "the speed of GPUs with --model fasttext is unknown; its nodes cost $"),
        ({"model": "auto", "minutes": 2.0}, "--model auto searches for at most 2 minutes, and then trains"),
        ({"resume": True}, "does not predict the remaining time of a resumed run"),
    ],
)
def test_an_impossible_prediction_is_noted_and_not_an_error(aws, tmp_path, capsys, changes, part):
    one = Fleet().add("one", "g5.xlarge", 1)
    config = TrainConfig(data=Path("dataset"), output=tmp_path, **changes)
    with Bars() as bars:
        assert predicted_on(one.deployment, config, PreparedDataset(DATASET), bars) is None
    assert part in " ".join(capsys.readouterr().err.split())


def test_credentials_that_expire_before_the_training_ends_are_noted_before_a_node_starts(
    aws, tmp_path, capsys, monkeypatch
):
    one = Fleet().add("one", "g5.xlarge", 1)
    config = TrainConfig(data=Path("dataset"), output=tmp_path)
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", (datetime.now(UTC) + timedelta(minutes=2)).isoformat())
    with Bars() as bars:
        found = predicted_on(one.deployment, config, PreparedDataset(DATASET), bars)
        missing = PreparedDataset(f"s3://{BUCKET}/datasets/{2:032x}/dataset.h5")
        assert predicted_on(one.deployment, config, missing, bars) is None
    assert found is not None
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("warning: your AWS credentials expire at ") == 2
    assert "but no command shows its progress; renew the credentials, and follow " in said
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", (datetime.now(UTC) + timedelta(days=2)).isoformat())
    with Bars() as bars:
        predicted_on(one.deployment, config, PreparedDataset(DATASET), bars)
    assert "warning" not in capsys.readouterr().err
