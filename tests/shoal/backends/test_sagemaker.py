"""Tests of SageMaker training jobs, from SageMaker's descriptions."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from common import names
from common.errors import ShoalError, UsageError
from corpus.reading.s3 import S3Path
from shoal.aws.deployment import Deployment
from shoal.backends import sagemaker, training_jobs
from shoal.backends.attaching import backend_on
from shoal.backends.job_inputs import job_inputs, longest_seconds
from shoal.backends.sagemaker import SageMakerBackend
from shoal.backends.training_jobs import Job, instances_of, job_name, jobs
from shoal.runs.run import NO_LIMITS, Limits, Run
from shoal.runs.sources.dataset import PreparedDataset
from trainer.config import configured

NOW = datetime(2026, 1, 2, 4, tzinfo=UTC)
RUN = "demo.20260102T030405-0a1b"


def shown(**more):
    folder = more.pop("bucket", "data")
    return {
        "TrainingJobName": job_name(RUN),
        "TrainingJobStatus": "InProgress",
        "CheckpointConfig": {"S3Uri": f"s3://{folder}/runs/{RUN}"},
        "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2},
        **more,
    }


class SageMaker:
    """Fake session and client that lists and describes these jobs."""

    region_name = "us-east-1"

    def __init__(self, *found):
        self._found = {each["CheckpointConfig"]["S3Uri"]: each for each in found}
        self._next = iter(found)

    def client(self, _):
        return self

    def get_paginator(self, _):
        return self

    def paginate(self, **_):
        return [{"TrainingJobSummaries": list(self._found.values())}]

    def describe_training_job(self, **_):
        return next(self._next)


def deployment(*found):
    outputs = {names.OUTPUT_DATA_BUCKET: "data"}
    return Deployment(name="demo", topology="demo", session=SageMaker(*found), outputs=outputs)


def a_run(options=None, limits=NO_LIMITS):
    config = configured({"data": Path("data"), "output": Path("output"), "model": "linear", **(options or {})})
    return Run.of_config(config, PreparedDataset("s3://data/datasets/x/dataset.h5"), limits, name=RUN)


@pytest.mark.parametrize(
    ("more", "seconds", "outcome", "why"),
    [
        ({}, 0.0, "stopped", ""),
        ({"TrainingStartTime": NOW - timedelta(seconds=90)}, 90.0, "stopped", ""),
        ({"TrainingJobStatus": "Completed", "BillableTimeInSeconds": 60}, 60.0, "finished", ""),
        ({"TrainingJobStatus": "Failed", "FailureReason": "no\x1b disk"}, 0.0, "failed", "no\x1b disk"),
    ],
)
def test_a_job_has_billed_seconds_an_outcome_and_a_reason(more, seconds, outcome, why):
    job = Job(deployment(), shown(**more))
    assert (job.run, job.seconds(NOW), job.outcome, job.why) == (RUN, seconds, outcome, why)
    assert [(each["instance_type"], each["gpus"]) for each in instances_of(job)] == [("g5.xlarge", 1)] * 2


def test_jobs_of_an_earlier_deployment_with_the_same_name_do_not_count(monkeypatch):
    monkeypatch.setattr(training_jobs, "retrying", lambda call: call())
    found = shown(), shown(bucket="data-of-another")
    assert [job.bucket for job in jobs(deployment(*found))] == ["data"]


def test_the_options_of_a_job_are_lists_of_words():
    assert Job(deployment(), shown(HyperParameters={"epochs": '["3"]'})).options == {"epochs": ("3",)}


@pytest.mark.parametrize("value", ["3", '{"x": 1}', '"abc"', "[1, [2]]", pytest.param("[" * 60_000, id="deep"), "x"])
def test_a_foreign_job_is_listed_but_its_options_are_refused(value, tmp_path, monkeypatch, messages):
    monkeypatch.setattr(training_jobs, "retrying", lambda call: call())
    backend = SageMakerBackend(deployment(shown(HyperParameters={"epochs": value})))
    assert backend.current_runs() == [RUN]
    assert not backend.state(RUN).has_ended
    with messages.raises(ShoalError):
        backend.requested_run(RUN, tmp_path)


@pytest.mark.parametrize("more", [{}, {"S3Uri": ""}, {"S3Uri": "s3://data/runs/x"}])
def test_a_job_without_a_run_folder_is_refused(more):
    with pytest.raises(ShoalError):
        Job(deployment(), shown() | {"CheckpointConfig": more})


@pytest.mark.parametrize(
    "options", [{"keep": True}, {"min_nodes": 2}, {"max_dollars": 0.001}], ids=lambda options: next(iter(options))
)
def test_options_that_jobs_do_not_support_are_refused(options, monkeypatch, messages):
    shared, limits = SimpleNamespace(max_hours=12, hourly=lambda _: 1.408), Limits(**options)
    monkeypatch.setattr(sagemaker.Backend, "prepare", lambda *_: pytest.fail("the data was uploaded"))
    with messages.raises(ShoalError):
        if limits.max_dollars is None:
            SageMakerBackend(deployment()).prepare(None, None, limits)
        longest_seconds(deployment(), a_run(limits=limits), shared)


@pytest.mark.parametrize(
    ("options", "channels"),
    [({"model": "linear"}, set()), ({"model": "lstm", "embeddings": "s3://data/vectors.txt"}, {"embeddings"})],
    ids=["without files", "with initial vectors"],
)
def test_the_files_of_a_run_are_input_channels_of_its_job(options, channels, monkeypatch):
    monkeypatch.setattr("shoal.aws.objects.sizes", lambda *_: {})
    shared = SimpleNamespace(code="s3://data/code.zip", wheels="", script="")
    hyper, found = job_inputs(None, a_run(options), shared, S3Path("data", f"runs/{RUN}/"))
    assert found.keys() == {"data", "code", *channels}
    assert not {"data", "embeddings"} & hyper.keys()


def test_managed_training_needs_a_topology_with_managed(messages):
    with messages.raises(UsageError):
        backend_on(deployment(), managed=True)
