"""The guard of a real deployment, made by the real CDK command: what it ends, and what it leaves to be fetched."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from bootstrap.aws import cdk
from bootstrap.removal.inventory import inventory, left_over
from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from embedded.aws import ACCOUNT, REGION, EmbeddedAws
from infra import topology
from tests.bootstrap.cli.command import shoal
from tests.bootstrap.training.on_nodes import rows
from tests.person import make_repository_whose_cluster_installs_nothing
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]


class Deployment:
    """The demo's deployment, as its guard sees it."""

    def __init__(self) -> None:
        self.stack = topology.stack_name("guarded")
        (record,) = boto3.client("cloudformation").describe_stacks(StackName=self.stack)["Stacks"]
        self.created, self.identifier = record["CreationTime"], record["StackId"]
        self.outputs = {each["OutputKey"]: each["OutputValue"] for each in record["Outputs"]}

    def wake(self, now: datetime) -> None:
        answer = boto3.client("lambda").invoke(
            FunctionName=self.outputs[topology.OUTPUT_GUARD],
            Payload=json.dumps({"time": now.astimezone(UTC).isoformat()}),
        )
        assert "FunctionError" not in answer, answer["Payload"].read()

    def status(self) -> str:
        (record,) = boto3.client("cloudformation").describe_stacks(StackName=self.identifier)["Stacks"]
        return str(record["StackStatus"])

    def groups(self) -> list[dict[str, Any]]:
        found = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        return [dict(group) for group in found]

    def desired(self) -> list[int]:
        return [group["DesiredCapacity"] for group in self.groups()]

    def results(self, run: str) -> list[str]:
        """What the bucket has of a run, by names within its folder."""
        prefix = f"{topology.RUNS_PREFIX}{run}/"
        found = boto3.client("s3").list_objects_v2(Bucket=self.outputs[topology.OUTPUT_DATA_BUCKET], Prefix=prefix)
        return [each["Key"].removeprefix(prefix) for each in found.get("Contents", ())]

    def result(self, run: str, name: str) -> bytes:
        place = {"Bucket": self.outputs[topology.OUTPUT_DATA_BUCKET], "Key": f"{topology.RUNS_PREFIX}{run}/{name}"}
        return bytes(boto3.client("s3").get_object(**place)["Body"].read())


def told(*arguments: str | Path) -> dict[str, Any]:
    said = shoal(*arguments, "--json")
    assert said.returncode == 0, said.stdout + said.stderr
    return dict(json.loads(said.stdout))


def begun(folder: Path) -> str:
    """A run on the deployment that goes on for long, without its command."""
    vocabulary = [f"word{letter}" for letter in "abcdefghijklmnopqrst"]
    used = Settings(row_length=10, vocabulary_size=20)
    write_dataset(folder / "dataset.h5", train=rows(2000), test=rows(200), vocabulary=vocabulary, settings=used)
    options = (
        "--model",
        "lstm",
        "--epochs",
        "10000",
        "--checkpoint-minutes",
        "0.05",
        "--output",
        folder / "out",
        "--detach",
    )
    return str(told("train", "--deployment", "guarded", "--data", folder / "dataset.h5", *options)["run"])


def eventually(probe: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not probe():
        assert time.monotonic() < until, "this never became true"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def before(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What there was before the deployment was made."""
    folder = tmp_path_factory.mktemp("guarded")
    run = {"environment": aws.environment, "assembly": folder / "assembly", "log": folder / "cdk.log"}
    cdk.prepare(account=ACCOUNT, region=REGION, environment=aws.environment, log=run["log"])
    found = inventory()
    repository = make_repository_whose_cluster_installs_nothing(folder / "repository")
    cdk.run(
        ["deploy", "-c", "topology=demo", "-c", "deployment=guarded", "--require-approval", "never"],
        root=repository,
        **run,
    )
    return found


@pytest.fixture(scope="module")
def deployment(before: dict[str, set[str]]) -> Deployment:
    return Deployment()


def test_at_the_end_a_run_stops_with_a_checkpoint_and_its_bucket_alone_is_left_until_it_is_given_up(
    deployment: Deployment, before: dict[str, set[str]], tmp_path: Path
) -> None:
    boto3.client("ssm").put_parameter(Name=topology.extension_parameter("guarded"), Value="1", Type="String")
    for hours in (11.6, 12.1, 12.6):
        deployment.wake(deployment.created + timedelta(hours=hours))
    assert deployment.status() == "CREATE_COMPLETE"
    run = begun(tmp_path)  # only now: by the hours of the guard's clock its nodes would be idle
    eventually(lambda: "checkpoints/" in " ".join(deployment.results(run)))
    deployment.wake(deployment.created + timedelta(hours=13))
    assert (deployment.status(), set(deployment.desired())) == ("CREATE_COMPLETE", {1})
    eventually(lambda: topology.END_NAME in deployment.results(run))
    assert json.loads(deployment.result(run, topology.END_NAME))["outcome"] == "stopped"
    summary = json.loads(deployment.result(run, "summary.json"))
    assert summary["stopped"] is True
    assert f"checkpoints/step-{summary['steps']:09d}.pt" in deployment.results(run)
    deployment.wake(deployment.created + timedelta(hours=13.1))
    eventually(lambda: deployment.status() != "DELETE_IN_PROGRESS")
    assert deployment.status() == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="ParameterNotFound"):
        boto3.client("ssm").get_parameter(Name=topology.guard_parameter("guarded"))

    bucket = deployment.outputs[topology.OUTPUT_DATA_BUCKET]
    assert left_over(before, inventory()) == {"s3 bucket": {bucket}}
    now = told("status", "guarded")
    (stays,) = now["stays"]
    assert (now["state"], stays["bucket"]) == (None, bucket)
    assert min(stays["objects"], stays["bytes"], stays["monthly"]) > 0
    assert f"it holds 1 run not fetched whole: {run}; " in stays["why"]
    assert told("destroy", "guarded", "--dry-run")["stays"] == [stays]
    assert told("destroy", "guarded", "--yes", "--delete-runs")["destroyed"] is True
    assert left_over(before, inventory()) == {}
