"""Training jobs of SageMaker: deploy a topology without machines, train by a job, destroy."""

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import JobInterrupted
from tests.local_aws.accounts import refused

from shoal.demo.reviews import write_reviews
from shoal.deployments.removal.inventory import inventory, left_over
from tests.command_user import ROOT, CommandUser, install_from_this_machine
from tests.infra.grants import mistaken_grants
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.end_to_end

MODEL = ("--model", "fasttext", "--epochs", "5", "--seed", "3")
LSTM = ("--model", "lstm", "--embedding", "16", "--hidden", "16", "--global-batch", "16", "--seed", "3")
LONG = (*LSTM, "--checkpoint-minutes", "0.01", "--epochs", "8")
SLOWED = ("--slow", "0:20")
SLOW = (*LSTM, "--checkpoint-minutes", "0.01", *SLOWED, "--epochs", "40")
ROLE = "ManagedRoleBC2A80E6"
LOGS = "/aws/sagemaker/TrainingJobs"


@pytest.fixture(scope="module")
def user(
    aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[CommandUser]:
    """Yield a user who has deployed the shipped topology. Afterwards nothing of it is left."""
    made = CommandUser.prepared(aws, tmp_path_factory.mktemp("life"))
    install_from_this_machine(made, "gpu")
    before = inventory()
    made.write_topology("managed", (ROOT / "topologies" / "managed.yaml").read_text())
    assembly = made.cdk_deploy("managed")
    yield made
    left = job_names("managed", at_work=True)
    said, *_ = made.run("destroy", "managed", "--yes", "--stop-runs", "--delete-runs")
    assert "nothing that costs money is left" in said
    assert all(described(each)["TrainingJobStatus"] == "Stopped" for each in left)
    # SageMaker has one log group for all jobs of an account. It keeps no streams of the deployment.
    assert left_over(before, inventory()) == {"log group": {LOGS}}
    assert streams() == []
    assert refused(aws) == set()
    if sum(each.path == request.path for each in request.session.items) >= 5:  # only all jobs together need all grants
        template = json.loads((assembly / "Shoal-managed.template.json").read_text())
        grants = mistaken_grants(template, aws.folder, stack="Shoal-managed", roles={ROLE})
        assert list(grants) == []


@pytest.fixture(scope="module")
def data(user: CommandUser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_reviews(folder / "reviews.json", texts=600)
    user.run("preprocess", "--local", "--input", str(folder / "reviews.json"), "--output", str(folder))
    return folder / "dataset.h5"


@pytest.mark.slow
def test_a_job_gives_the_same_model_as_this_machine(user: CommandUser, data: Path, tmp_path: Path) -> None:
    there = trained(user, "--deployment", "managed", "--data", str(data), "--output", str(tmp_path / "there"))
    here = trained(user, "--local", "--data", str(data), "--output", str(tmp_path / "here"))
    assert there["accuracy"] == pytest.approx(here["accuracy"], abs=1e-6)
    assert there["rows"] == here["rows"]
    assert (tmp_path / "there" / "model" / "model.safetensors").read_bytes() == (
        tmp_path / "here" / "model" / "model.safetensors"
    ).read_bytes()
    (job,) = (described(each) for each in job_names())
    assert job["TrainingJobStatus"] == "Completed"
    assert there["cost"] == pytest.approx(job["BillableTimeInSeconds"] * 1.408 / 3600)
    metrics = {each["MetricName"]: each["Value"] for each in job["FinalMetricDataList"]}
    assert metrics["accuracy"] == pytest.approx(there["accuracy"], abs=1e-6)
    assert {"loss", "accuracy"} <= metrics.keys()
    assert streams() != []


@pytest.fixture(scope="module")
def pair(user: CommandUser) -> Iterator[CommandUser]:
    """Deploy two hosts, too. Their deployment may have ended by itself; its data bucket is deleted here."""
    user.write_topology("pair", "description: x\nmanaged: {instance_type: ml.g4dn.xlarge, count: 2, market: spot}\n")
    user.cdk_deploy("pair")
    yield user
    assert "nothing that costs money is left" in user.run("destroy", "pair", "--yes", "--delete-runs")[0]


@pytest.mark.soak
def test_two_interrupted_hosts_resume_and_give_the_model_of_two_local_ranks(
    pair: CommandUser, data: Path, tmp_path: Path
) -> None:
    with pair.aws.faults.during(JobInterrupted()):
        there = trained(pair, "--deployment", "pair", "--data", str(data), "--output", str(tmp_path / "there"), *LONG)
    (job,) = (described(each) for each in job_names("pair"))
    assert [each["Status"] for each in job["SecondaryStatusTransitions"]] == [
        *("Starting", "Downloading", "Training", "Interrupted"),
        *("Starting", "Downloading", "Training", "Uploading", "Completed"),
    ]
    here = trained(pair, "--local", "--nodes", "2", "--data", str(data), "--output", str(tmp_path / "here"), *LONG)
    assert there["accuracy"] == pytest.approx(here["accuracy"], abs=1e-6)
    assert there["world_size"] == here["world_size"] == 2
    assert sum(each["instance_type"] == "g4dn.xlarge" for each in there["nodes"]) == 2
    assert lines(tmp_path / "there", "start")[-1]["from_step"] > 0


@pytest.mark.soak
def test_a_detached_job_is_followed_stopped_with_a_checkpoint_and_resumed(
    user: CommandUser, data: Path, tmp_path: Path
) -> None:
    command = ("train", "--deployment", "managed", "--data", str(data), "--output", str(tmp_path / "run"), *SLOW)
    left = json.loads(user.run(*command, "--detach", "--json")[0])
    (job,) = job_names("managed", at_work=True)
    assert left["detached"]
    assert left["run"] in user.run("status", "managed")[0]
    _, said = user.run(*command[:-1], "99", status=1)
    assert f"SageMaker already trains {left['run']} for 'managed'" in said
    following = user.start(*command)
    assert following.stderr is not None
    while f"following run {left['run']}" not in (line := following.stderr.readline()):
        assert line, following.communicate()
    wait_for_checkpoint(user, left["run"])
    assert "stopped" in user.run("stop", "managed")[0]
    stdout, stderr = following.communicate(timeout=PATIENCE)
    assert following.returncode == 130, stdout + stderr
    assert described(job)["TrainingJobStatus"] == "Stopped"
    resumed = json.loads(user.run(*(each for each in command if each not in SLOWED), "--resume", "--json")[0])
    assert not resumed["stopped"]
    assert job_names("managed")[0] == f"{job}-2"
    starts = lines(tmp_path / "run", "start")
    assert starts[-1]["from_step"] > 0
    attached = json.loads(user.run("attach", "managed", left["run"], "--json", "--output", str(tmp_path / "a"))[0])
    assert attached["accuracy"] == resumed["accuracy"]


@pytest.mark.soak
def test_at_the_end_of_life_a_job_stops_with_a_checkpoint_before_the_deletion(
    pair: CommandUser, data: Path, tmp_path: Path
) -> None:
    command = ("train", "--deployment", "pair", "--data", str(data), "--output", str(tmp_path / "run"), *SLOW)
    left = json.loads(pair.run(*command, "--detach", "--json")[0])
    wait_for_checkpoint(pair, left["run"], "pair")
    created = pair.stack("pair")["CreationTime"]
    guard_round(pair, created + timedelta(hours=11.6))
    (job,) = job_names("pair", at_work=True)
    guard_round(pair, created + timedelta(hours=12.01))
    while described(job)["TrainingJobStatus"] not in ("Stopped", "Failed"):
        assert pair.stack("pair")["StackStatus"] == "CREATE_COMPLETE"
        time.sleep(0.5)
    assert described(job)["TrainingJobStatus"] == "Stopped"
    guard_round(pair, created + timedelta(hours=12.1))
    pair.run("fetch", "pair", "--output", str(tmp_path / "fetched"))
    assert json.loads((tmp_path / "fetched" / left["run"] / "summary.json").read_text())["stopped"]


@pytest.mark.slow
def test_a_running_job_is_stopped_with_its_deployment(user: CommandUser, data: Path, tmp_path: Path) -> None:
    command = ("train", "--deployment", "managed", "--data", str(data), "--output", str(tmp_path / "run"), *SLOW)
    wait_for_checkpoint(user, json.loads(user.run(*command, "--detach", "--json")[0])["run"])
    assert len(job_names("managed", at_work=True)) == 1  # the fixture `user` checks how it ends


def guard_round(user: CommandUser, now: datetime) -> None:
    """Run a round of the guard at this time."""
    event = json.dumps({"time": now.isoformat()})
    answer = boto3.client("lambda").invoke(FunctionName=user.stack_outputs("pair")["GuardFunction"], Payload=event)
    assert "FunctionError" not in answer, answer["Payload"].read()


def wait_for_checkpoint(user: CommandUser, run: str, deployment: str = "managed") -> None:
    """Wait until the job of a run has left a checkpoint."""
    bucket, prefix = user.stack_outputs(deployment)["DataBucket"], f"runs/{run}/checkpoints/"
    until(lambda: boto3.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents"), every=0.5)


def lines(output: Path, kind: str) -> list[dict[str, Any]]:
    found = map(json.loads, (output / "record.jsonl").read_text().splitlines())
    return [each for each in found if each["kind"] == kind]


def trained(user: CommandUser, *arguments: str) -> dict[str, Any]:
    model = () if "--model" in arguments else MODEL
    said, _ = user.run("train", *arguments, *model, "--json")
    return dict(json.loads(said))


def job_names(deployment: str = "managed", *, at_work: bool = False) -> list[str]:
    found = boto3.client("sagemaker").list_training_jobs(NameContains=f"shoal-{deployment}-")["TrainingJobSummaries"]
    return [each["TrainingJobName"] for each in found if not at_work or each["TrainingJobStatus"] == "InProgress"]


def described(name: str) -> dict[str, Any]:
    return dict(boto3.client("sagemaker").describe_training_job(TrainingJobName=name))


def streams() -> list[str]:
    logs = boto3.client("logs")
    try:
        return [each["logStreamName"] for each in logs.describe_log_streams(logGroupName=LOGS)["logStreams"]]
    except logs.exceptions.ResourceNotFoundException:
        return []
