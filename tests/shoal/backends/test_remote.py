"""Tests of preparing a training run on nodes of the embedded AWS."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.errors import DataError, ShoalError, TrainingError
from shoal.backends import deployment_data
from shoal.backends.deployment_data import DeploymentData
from shoal.runs.sources.dataset import PreparedDataset
from tests.fleet import BUCKET, Fleet
from tests.shoal.backends.on_nodes import DATASET
from tests.trained import predicted_on, train_on
from trainer.config import configured

pytestmark = pytest.mark.usefixtures("node_bucket")


@pytest.fixture
def one(aws, messages):
    """A group of one node, which has not started."""
    fleet = Fleet().add("one", "g5.xlarge", 1)
    messages.hide(fleet.name, "FLEET")
    return fleet


def test_the_newest_dataset_is_in_the_folder_that_changed_last(monkeypatch):
    hours = {f"{'1' * 32}/dataset.h5": 1, f"{'1' * 32}/{'a' * 12}.json": 3, f"{'2' * 32}/dataset.h5": 2}
    listed = [
        {"Key": f"datasets/{name}", "LastModified": datetime(2026, 1, 1, hour, tzinfo=UTC)}
        for name, hour in hours.items()
    ]
    monkeypatch.setattr(deployment_data, "list_objects", lambda *_: iter(listed))
    place = SimpleNamespace(_s3=None, _bucket=BUCKET)
    assert DeploymentData.newest_dataset(place) == f"s3://{BUCKET}/datasets/{'1' * 32}/dataset.h5"


@pytest.mark.parametrize("resume", [False, True])
def test_a_finished_model_is_not_replaced_and_no_node_is_started_for_it(one, tmp_path, resume, messages):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("finished")
    config = configured({"model": "lstm", "data": Path("dataset"), "output": tmp_path, "resume": resume})
    with messages.raises(TrainingError):
        train_on(one.deployment, config, DATASET)
    assert one.scaling.describe_scaling_activities(AutoScalingGroupName=f"{one.name}-one")["Activities"] == []


def test_unreadable_vectors_are_refused_before_any_node_starts(one, tmp_path, messages):
    for address in ("vectors.bin", "s3://elsewhere/v.bin"):
        config = configured({"model": "lstm", "data": Path("dataset"), "output": tmp_path, "embeddings": address})
        with messages.raises((DataError, ShoalError)):
            train_on(one.deployment, config, DATASET)
    assert one.scaling.describe_scaling_activities(AutoScalingGroupName=f"{one.name}-one")["Activities"] == []


@pytest.mark.parametrize("changes", [{"model": "skipgram"}, {"model": "lstm", "resume": True}], ids=str)
def test_an_impossible_prediction_is_noted_and_not_an_error(one, tmp_path, capsys, changes, messages):
    config = configured({"data": Path("dataset"), "output": tmp_path, **changes})
    assert predicted_on(one.deployment, config, PreparedDataset(DATASET)) is None
    messages.check(" ".join(capsys.readouterr().err.split()))
