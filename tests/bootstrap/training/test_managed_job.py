"""A training job as SageMaker shows it."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bootstrap.aws.deployment import Deployment
from bootstrap.training.attaching import place_on
from bootstrap.training.places import managed, managed_job
from bootstrap.training.places.launch import LaunchOptions
from bootstrap.training.places.managed import OnManaged
from bootstrap.training.places.managed_job import Job, job_name, jobs
from common.errors import ShoalError, UsageError
from infra import topology

NOW = datetime(2026, 1, 2, 4, tzinfo=UTC)
RUN = "demo.20260102T030405-0a1b"


def shown(**more: Any) -> dict[str, Any]:
    folder = more.pop("bucket", "data")
    return {
        "TrainingJobName": job_name(RUN),
        "TrainingJobStatus": "InProgress",
        "CheckpointConfig": {"S3Uri": f"s3://{folder}/runs/{RUN}"},
        "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2},
        **more,
    }


class SageMaker:
    """Lists and shows these jobs; it is the session, too."""

    region_name = "us-east-1"

    def __init__(self, *found: dict[str, Any]) -> None:
        self._found = {each["CheckpointConfig"]["S3Uri"]: each for each in found}
        self._next = iter(found)

    def client(self, _: str) -> "SageMaker":
        return self

    def get_paginator(self, _: str) -> "SageMaker":
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        return [{"TrainingJobSummaries": list(self._found.values())}]

    def describe_training_job(self, **_: str) -> dict[str, Any]:
        return next(self._next)


def deployment(*found: dict[str, Any]) -> Deployment:
    outputs = {topology.OUTPUT_DATA_BUCKET: "data"}
    return Deployment(name="demo", topology="demo", session=cast(Any, SageMaker(*found)), outputs=outputs)


@pytest.mark.parametrize(
    ("more", "seconds", "outcome", "why"),
    [
        ({}, 0.0, "stopped", ""),
        ({"TrainingStartTime": NOW - timedelta(seconds=90)}, 90.0, "stopped", ""),
        ({"TrainingJobStatus": "Completed", "BillableTimeInSeconds": 60}, 60.0, "finished", ""),
        ({"TrainingJobStatus": "Failed", "FailureReason": "no\x1b disk"}, 0.0, "failed", "no\x1b disk"),
    ],
)
def test_its_paid_seconds_and_its_end(more: dict[str, Any], seconds: float, outcome: str, why: str) -> None:
    job = Job(deployment(), shown(**more))
    assert (job.run, job.seconds(NOW), job.outcome, job.why) == (RUN, seconds, outcome, why)
    assert [(each["instance_type"], each["gpus"]) for each in job.instances] == [("g5.xlarge", 1)] * 2


def test_those_of_an_earlier_deployment_of_the_name_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_job, "retrying", lambda call: call())
    found = shown(), shown(bucket="data-of-another")
    assert [job.bucket for job in jobs(deployment(*found))] == ["data"]


def test_its_options_are_lists_of_words() -> None:
    assert Job(deployment(), shown(HyperParameters={"epochs": '["3"]'})).options == {"epochs": ("3",)}


@pytest.mark.parametrize("value", ["3", '{"x": 1}', '"abc"', "[1, [2]]", "[" * 60_000, "x"])
def test_a_job_that_is_not_shoals_is_listed_and_its_options_are_refused(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed_job, "retrying", lambda call: call())
    (found,) = OnManaged(deployment(shown(HyperParameters={"epochs": value}))).wanted()
    assert (found.name, found.has_ended) == (RUN, False)
    with pytest.raises(ShoalError, match=r"^the job \S+ has options that are not Shoal's"):
        assert found.options


@pytest.mark.parametrize("more", [{}, {"S3Uri": ""}, {"S3Uri": "s3://data/runs/x"}])
def test_a_job_without_the_folder_of_a_run_is_refused(more: dict[str, str]) -> None:
    with pytest.raises(ShoalError):
        Job(deployment(), shown() | {"CheckpointConfig": more})


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        (LaunchOptions(keep=True), "--keep is about nodes, and SageMaker trains for 'demo'; leave it out"),
        (LaunchOptions(min_nodes=2), "--min-nodes is about nodes"),
        (
            LaunchOptions(max_dollars=0.001),
            r"--max-dollars is 0.001, but a job costs \$1.41 an hour; give a higher --max-doll",
        ),
    ],
)
def test_what_a_job_cannot_do_is_refused(wishes: LaunchOptions, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = SimpleNamespace(max_hours=12, hourly=lambda _: 1.408)
    monkeypatch.setattr(managed, "settings", lambda _: asked)
    with pytest.raises(ShoalError, match=sentence):
        OnManaged(deployment(), wishes).longest_seconds()


def test_jobs_are_wanted_only_of_a_topology_that_has_them() -> None:
    with pytest.raises(UsageError, match=r"^the topology of 'demo' has no `managed`; leave out --managed$"):
        place_on(deployment(), LaunchOptions(managed=True))
