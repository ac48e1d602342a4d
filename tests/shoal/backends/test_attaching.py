"""Tests of the choice of a run if the user names none."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from common import names
from shoal.backends import attaching
from shoal.backends.sagemaker import SageMakerBackend
from shoal.deployments import runs
from shoal.runs.state import RunState

RESUMED, LATER = "demo.20260102T030405-0a1b", "demo.20260103T030405-0a1b"
DEPLOYMENT = SimpleNamespace(name="demo", outputs={names.OUTPUT_CLUSTER_ID: "j-1"})


def backend(*wanted, ended=""):
    """Return a backend with these runs (name, ended), and with another newest ended run."""
    outcomes = {**{name: "finished" if has_ended else "" for name, has_ended in wanted}, ended: "finished"}
    made = Mock(spec=SageMakerBackend)
    made.state = lambda name: RunState(phase="", outcome=outcomes[name])
    made.current_runs, made.newest_ended = (lambda: [name for name, _ in wanted]), lambda _: ended or None
    return made


@pytest.mark.parametrize(
    ("backends", "found"),
    [([backend((RESUMED, True), (LATER, False))], LATER), ([backend(ended=LATER), backend((RESUMED, True))], LATER)],
)
def test_the_latest_training_is_chosen(backends, found, monkeypatch):
    monkeypatch.setattr(attaching, "_backends", lambda _: backends)
    assert attaching.find_training(DEPLOYMENT, None).name == found


def test_only_the_list_of_trainings_ignores_a_deleted_bucket(monkeypatch):
    def gone():
        raise ClientError({"Error": {"Code": "NoSuchBucket"}}, "GetObject")

    monkeypatch.setattr(attaching, "_backends", lambda _: [SimpleNamespace(current_runs=gone)])
    assert attaching.overview(DEPLOYMENT, {}) == attaching.listed_trainings(DEPLOYMENT) == []
    with pytest.raises(ClientError):
        attaching.find_training(DEPLOYMENT, None)


@pytest.mark.parametrize(
    ("trainings", "steps", "is_preprocessing"),
    [
        ([(LATER, True)], True, True),  # the active run precedes one that waits to be fetched
        ([(LATER, True)], False, False),
        ([(LATER, True), (RESUMED, False)], True, False),
        ([], False, True),
    ],
)
def test_an_active_run_is_chosen_before_an_ended_one(trainings, steps, is_preprocessing, monkeypatch):
    def found(_, __):
        return "training"

    monkeypatch.setattr(attaching, "_backends", lambda _: [backend(*trainings)])
    monkeypatch.setattr(runs, "find_training", found)
    monkeypatch.setattr(runs, "EmrCluster", lambda _: None)
    monkeypatch.setattr(runs, "step_of", lambda *_: {} if steps else None)
    assert (runs.find_run(DEPLOYMENT, None) != "training") == is_preprocessing
