"""Commands on a real deployment in the emulator: status, extend, fetch, logs, costs, destroy."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from shoal_local_aws.aws import REGION

from common import names
from infra import topology
from shoal.deployments import destroy_preview
from shoal.deployments.kept import KeptBucket
from shoal.deployments.removal import teardown
from shoal.deployments.removal.inventory import inventory, left_over
from tests.infra.assemblies import deploy
from tests.shoal.cli.command import Done, shoal_here
from tests.waiting import until

pytestmark = pytest.mark.end_to_end

NAME = "mine"
RUN = f"{NAME}.20260102T030405-0a1b"


def shoal(*arguments: str | Path, status: int = 0) -> Done:
    done = shoal_here(*arguments)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def json_of(*arguments: str | Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(shoal(*arguments, "--json").stdout)
    return content


@pytest.fixture(scope="module")
def before(aws, shared_clients) -> dict[str, set[str]]:
    """The inventory of the account before the deployment `mine` of the demo's topology."""
    # An extension left by an earlier deployment with this name must not apply to this one.
    boto3.client("ssm").put_parameter(Name=names.extension_parameter(NAME), Value="50", Type="String")
    before = deploy("demo", NAME, aws.folder, {"bootstrap/emr/install.sh": "exit 0"})
    return {kind: found - {names.extension_parameter(NAME)} for kind, found in before.items()}


@pytest.fixture(scope="module")
def data(before) -> str:
    """The deployment's data bucket, with a model."""
    bucket = str(json_of("status", NAME)["outputs"][names.OUTPUT_DATA_BUCKET])
    boto3.client("s3").put_object(Bucket=bucket, Key=f"runs/{RUN}/model/config.json", Body=b"weights")
    return bucket


def test_status_shows_what_exists_and_what_it_costs(before) -> None:
    now = json_of("status", NAME)
    assert (now["state"], now["owner"], now["topology"]) == ("CREATE_COMPLETE", "ada", "demo")
    assert now["cluster"]["state"] == "WAITING"
    assert [(group["size"], group["running"]) for group in now["groups"]] == [(1, 0), (1, 0)]
    assert 0 < now["dollars_an_hour"] < now["dollars_an_hour_at_most"]
    created, ends = (datetime.fromisoformat(now[key]) for key in ("created", "ends"))
    assert ends - created == timedelta(hours=12)


def test_extensions_add_up(before) -> None:
    first = json_of("extend", NAME, "--hours", "1.5")
    second = json_of("extend", NAME, "--hours", "2")
    assert second["before"] == first["after"]
    moved = datetime.fromisoformat(second["after"]) - datetime.fromisoformat(first["before"])
    assert moved == timedelta(hours=3.5)
    assert second["at_most_dollars"] == pytest.approx(2 * json_of("status", NAME)["dollars_an_hour_at_most"])


def break_parameters() -> list[str]:
    """Give both parameters of the guard invalid values; return their names."""
    values = {names.extension_parameter(NAME): "many", names.guard_parameter(NAME): '{"spent": "much"}'}
    for parameter, value in values.items():
        boto3.client("ssm").put_parameter(Name=parameter, Value=value, Type="String", Overwrite=True)
    return list(values)


@pytest.mark.soak
def test_a_broken_parameter_of_the_guard_is_reported_with_the_command_to_delete_it(before) -> None:
    extension, account = break_parameters()
    assert f"{account} has 'much'" in shoal("status", NAME, status=1).stderr
    assert "guard" in {each["who"] for each in json_of("logs", NAME)["excerpts"]}
    boto3.client("ssm").delete_parameter(Name=account)
    assert f"aws ssm delete-parameter --name {extension}; " in shoal("costs", NAME, status=1).stderr
    assert "its value is 'many'" in shoal("destroy", NAME, "--dry-run").stderr
    boto3.client("ssm").delete_parameter(Name=extension)
    assert json_of("status", NAME)["spent"] is None


def test_more_hours_than_the_guard_accepts_are_refused(before, messages) -> None:
    parameter = names.extension_parameter(NAME)
    boto3.client("ssm").put_parameter(Name=parameter, Value="99999", Type="String", Overwrite=True)
    messages.check(shoal("extend", NAME, "--hours", "2", status=1).stderr.rstrip())


def test_costs_show_the_estimate_and_why_there_is_no_bill(before, messages) -> None:
    costs = json_of("costs", NAME)
    assert costs["estimate"] == pytest.approx(costs["hours"] * json_of("status", NAME)["dollars_an_hour_at_most"])
    assert costs["billed"] is None
    messages.check(costs["why_not_billed"])


def test_logs_show_failed_steps_and_nodes_that_did_not_boot(data) -> None:
    cluster = json_of("status", NAME)["cluster"]["identifier"]
    emr, s3 = boto3.client("emr"), boto3.client("s3")
    step = {
        "Name": "breaks",
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["bash", "-c", "echo no disk >&2; exit 3"]},
    }
    (identifier,) = emr.add_job_flow_steps(JobFlowId=cluster, Steps=[step])["StepIds"]
    started = ("PENDING", "RUNNING")
    until(lambda: emr.describe_step(ClusterId=cluster, StepId=identifier)["Step"]["Status"]["State"] not in started)
    report = json.dumps({"state": "failed", "log": "no route to the share"})
    s3.put_object(Bucket=data, Key="nodes/i-1.json", Body=report.encode())
    logs = {each["who"]: each for each in json_of("logs", NAME)["excerpts"]}
    assert logs[f"step {identifier} (breaks)"]["state"].startswith("FAILED")
    assert (logs["node i-1"]["state"], logs["node i-1"]["lines"]) == ("failed", ["no route to the share"])


def test_a_preview_lists_the_cluster_and_the_kept_runs_and_deletes_nothing(data) -> None:
    preview = shoal("destroy", NAME, "--dry-run")
    assert f"kept: s3://{data}, " in preview.stderr
    assert f"not fetched completely: {RUN}; " in preview.stderr
    assert f"not fetched completely: {RUN}; " in shoal("status", NAME).stdout
    assert "EMR cluster" in preview.stderr
    assert data in preview.stdout
    assert json_of("status", NAME)["state"] == "CREATE_COMPLETE"


def test_destroy_works_without_the_cleanup_function(before, data, tmp_path) -> None:
    cloudformation = boto3.client("cloudformation")
    stack = topology.stack_name(NAME)
    (cleaner,) = (
        each["PhysicalResourceId"]
        for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        for each in page["StackResourceSummaries"]
        if each["ResourceType"] == "AWS::Lambda::Function" and each["LogicalResourceId"].startswith("Cleanup")
    )
    boto3.client("lambda").delete_function(FunctionName=cleaner)
    break_parameters()
    assert json_of("fetch", NAME, "--output", tmp_path)["runs"] == [RUN]
    done = json_of("destroy", NAME, "--yes")
    assert (done["destroyed"], done["stack"], done["unfetched"]) == (True, "deleted", [])
    assert (tmp_path / RUN / "model" / "config.json").read_bytes() == b"weights"
    assert left_over(before, inventory()) == {}
    assert shoal("destroy", NAME, "--yes").stdout == "nothing of 'mine' is left to destroy\n"
    assert "it was deleted at" in shoal("status", NAME, status=1).stdout


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.usefixtures("aws")
def test_destroy_empties_only_a_bucket_that_would_stay(stays, monkeypatch) -> None:
    bucket = KeptBucket(bucket="shoal-runs", objects=1, bytes=7, monthly=0.0, why="it holds 1 run")
    before = destroy_preview.DestroyPreview(
        **dict.fromkeys(("rate", "guard")),
        stack="Shoal-x, CREATE_COMPLETE, owner ada, topology demo",
        things=[],
        running=[],
        trains=[],
        kept=[bucket] if stays else [],
        unfetched=[RUN],
        bucket=bucket.bucket,
        notes=[],
    )
    destroyed = Mock(return_value=teardown.DestroyResult(stack="deleted", things=[]))
    monkeypatch.setattr(destroy_preview, "preview", lambda *_: before)
    monkeypatch.setattr(teardown, "destroy", destroyed)
    shoal_here("destroy", "x", "--yes", "--delete-runs", "--region", REGION)
    assert destroyed.call_args.kwargs["empty"] == (bucket.bucket if stays else None)
