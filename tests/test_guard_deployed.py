"""The guard of a deployment by the real CDK command ends the expected resources, and keeps unfetched results."""

import json
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws
from shoal_local_aws.faults.kinds import GuardDutyAgent

from common import names
from infra import topology
from shoal.aws import cdk
from shoal.deployments.removal.inventory import inventory, left_over
from tests.command_user import make_repository_with_empty_installs
from tests.shoal.backends.on_nodes import made_dataset
from tests.shoal.cli.command import shoal
from tests.waiting import until

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]


class Deployment:
    """The demo's deployment, as its guard sees it."""

    def __init__(self) -> None:
        (record,) = boto3.client("cloudformation").describe_stacks(StackName=topology.stack_name("guarded"))["Stacks"]
        self.created, self.identifier = record["CreationTime"], record["StackId"]
        self.outputs = {each["OutputKey"]: each["OutputValue"] for each in record["Outputs"]}
        self.bucket = self.outputs[names.OUTPUT_DATA_BUCKET]

    def wake(self, hours: float) -> None:
        """Run a round of the guard, this many hours after the creation."""
        event = json.dumps({"time": (self.created + timedelta(hours=hours)).astimezone(UTC).isoformat()})
        answer = boto3.client("lambda").invoke(FunctionName=self.outputs[names.OUTPUT_GUARD], Payload=event)
        assert "FunctionError" not in answer, answer["Payload"].read()

    def status(self) -> str:
        (record,) = boto3.client("cloudformation").describe_stacks(StackName=self.identifier)["Stacks"]
        return str(record["StackStatus"])

    def desired(self) -> set[int]:
        found = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        return {group["DesiredCapacity"] for group in found}

    def results(self, run: str) -> list[str]:
        """Return the objects of a run in the bucket, by their names in its folder."""
        prefix = f"{names.RUNS}{run}/"
        found = boto3.client("s3").list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return [each["Key"].removeprefix(prefix) for each in found.get("Contents", ())]

    def result(self, run: str, name: str) -> dict[str, Any]:
        found = boto3.client("s3").get_object(Bucket=self.bucket, Key=f"{names.RUNS}{run}/{name}")
        return dict(json.loads(found["Body"].read()))


def run_json(*arguments: str | Path) -> dict[str, Any]:
    said = shoal(*arguments, "--json")
    assert said.returncode == 0, said.stdout + said.stderr
    return dict(json.loads(said.stdout))


def start_long_run(folder: Path) -> str:
    """Start a long run on the deployment, detached from its command."""
    data = made_dataset(folder / "dataset.h5")
    options = ("--model", "lstm", "--epochs", "10000", "--checkpoint-minutes", "0.05", "--output", folder / "out")
    return str(run_json("train", "--deployment", "guarded", "--data", data, *options, "--detach")["run"])


@pytest.fixture(scope="module")
def before(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the resources of the account before the deployment. GuardDuty watches the account."""
    aws.faults.add(GuardDutyAgent(seconds=1))
    folder = tmp_path_factory.mktemp("guarded")
    run = {"environment": aws.environment, "assembly": folder / "assembly", "log": folder / "cdk.log"}
    cdk.prepare(account=ACCOUNT, region=REGION, environment=aws.environment, log=run["log"])
    found = inventory()
    repository = make_repository_with_empty_installs(folder / "repository")
    cdk.run(
        ["deploy", "-c", "topology=demo", "-c", "deployment=guarded", "--require-approval", "never"],
        root=repository,
        **run,
    )
    return found


def test_at_the_end_of_life_a_run_stops_with_a_checkpoint_and_only_its_bucket_is_kept(
    before: dict[str, set[str]], tmp_path: Path
) -> None:
    deployment = Deployment()
    boto3.client("ssm").put_parameter(Name=names.extension_parameter("guarded"), Value="1", Type="String")
    for hours in (11.6, 12.1, 12.6):
        deployment.wake(hours)
    assert deployment.status() == "CREATE_COMPLETE"
    run = start_long_run(tmp_path)  # only now: by the clock of the guard, its nodes would be idle
    until(lambda: "checkpoints/" in " ".join(deployment.results(run)))
    deployment.wake(13)
    assert (deployment.status(), deployment.desired()) == ("CREATE_COMPLETE", {1})
    until(lambda: names.END_NAME in deployment.results(run))
    assert deployment.result(run, names.END_NAME)["outcome"] == "stopped"
    summary = deployment.result(run, "summary.json")
    assert summary["stopped"] is True
    assert f"checkpoints/step-{summary['steps']:09d}.pt" in deployment.results(run)
    deployment.wake(13.1)
    until(lambda: deployment.status() != "DELETE_IN_PROGRESS")
    assert deployment.status() == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="ParameterNotFound"):
        boto3.client("ssm").get_parameter(Name=names.guard_parameter("guarded"))

    bucket = deployment.bucket
    assert left_over(before, inventory()) == {"s3 bucket": {bucket}}
    now = run_json("status", "guarded")
    (kept,) = now["kept"]
    assert (now["state"], kept["bucket"]) == (None, bucket)
    assert min(kept["objects"], kept["bytes"], kept["monthly"]) > 0
    assert f"these runs were not fetched completely: {run}; " in kept["why"]
    assert run_json("destroy", "guarded", "--dry-run")["kept"] == [kept]
    assert run_json("destroy", "guarded", "--yes", "--delete-runs")["destroyed"] is True
    assert left_over(before, inventory()) == {}
