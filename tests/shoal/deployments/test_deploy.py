"""Tests of `shoal deploy` with the real CDK command against the embedded AWS, of its progress, and of its failures."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from unittest.mock import Mock, call

import pytest
from shoal_local_aws.account import raise_quotas, use_emulator
from shoal_local_aws.aws import ACCOUNT, EmbeddedAws
from shoal_local_aws.faults.zones import FIRST_ZONE

from common import names
from common.errors import ShoalError
from common.progress import reporting
from infra.policies import BOUNDARY
from shoal.aws import stacks
from shoal.aws.account import Account
from shoal.aws.cdk import WHEELS
from shoal.aws.stacks import next_action
from shoal.deployments import deploy, failure
from shoal.deployments.deploy import _StackView
from shoal.deployments.removal import teardown
from shoal.deployments.removal.sweep import LEFT, UNVERIFIED, FoundResource
from shoal.deployments.removal.teardown import DestroyResult
from shoal.interrupt import Interrupt
from tests.command_user import CommandUser
from tests.waiting import PATIENCE, until

TRAINING = """
description: Two kinds of GPU
training:
  - {name: fast, instance_type: g5.xlarge, count: 1}
  - {name: slow, instance_type: g4dn.xlarge, count: 1}
"""
PREPROCESSING = """
description: One node
preprocessing:
  primary: {instance_type: m5.xlarge}
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory) -> Iterator[CommandUser]:
    """User of an account in which us-east-1a is use1-az3. This zone offers hardly any type of today."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FIRST_ZONE, "use1-az3")
        with EmbeddedAws(tmp_path_factory.mktemp("aws"), wheels=WHEELS) as aws:
            with use_emulator(aws):
                raise_quotas()
            made = CommandUser(aws, tmp_path_factory.mktemp("repository"))
            made.write_topology("pair", TRAINING)
            yield made


@pytest.fixture(scope="module")
def deployed(user) -> CommandUser:
    output, errors = user.run("deploy", "pair", "--yes", "--owner", "ada")
    assert "preparing the account for the CDK" in errors
    assert "everything running" in errors
    assert "complete" in output
    assert "shoal train --deployment pair" in output
    return user


@pytest.mark.soak
@pytest.mark.end_to_end
def test_another_owner_is_refused_by_either_command(deployed) -> None:
    errors = deployed.run("deploy", "pair", "--owner", "bob", "--yes", status=1)[1]
    assert "the deployment 'pair' belongs to ada" in errors
    boundary = f"permissions_boundary=arn:aws:iam::{ACCOUNT}:policy/{BOUNDARY}"
    refused = subprocess.run(
        ["cdk", "deploy", "-c", "topology=pair", "-c", "owner=bob", "-c", boundary, "--require-approval", "never"],
        cwd=deployed.repository,
        env=deployed.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert refused.returncode != 0
    assert "the deployment 'pair' belongs to ada" in refused.stdout
    assert deployed.stack("pair")["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert json.loads(deployed.run("plan", "pair", "--owner", "ada", "--json")[0])["plans"][0]["refused"] is False


@pytest.mark.soak
@pytest.mark.end_to_end
def test_an_interrupted_deployment_is_continued_while_another_exists(deployed) -> None:
    others = deployed.resources("pair")

    def status() -> list[str]:
        stacks = deployed.client("cloudformation").describe_stacks()["Stacks"]
        return [each["StackStatus"] for each in stacks if each["StackName"] == "Shoal-other"]

    process = deployed.start("deploy", "pair", "--deployment", "other", "--owner", "ada", "--yes")
    until(lambda: status() == ["CREATE_IN_PROGRESS"])
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130
    assert "CloudFormation continues to work on Shoal-other" in errors
    assert "shoal deploy pair --deployment other" in errors

    deployed.run("deploy", "pair", "--deployment", "other", "--owner", "ada", "--yes")
    assert deployed.stack("other")["StackStatus"] == "CREATE_COMPLETE"
    assert deployed.resources("pair") == others


@pytest.mark.soak
@pytest.mark.end_to_end
def test_a_cluster_that_ended_itself_is_replaced_and_nothing_else_changes(deployed) -> None:
    deployed.write_topology("cluster", PREPROCESSING)
    command = ("deploy", "cluster", "--owner", "ada", "--yes", "--json")
    first = json.loads(deployed.run(*command)[0])
    before = deployed.resources("cluster")
    deployed.client("emr").terminate_job_flows(JobFlowIds=[first["outputs"]["ClusterId"]])
    second = json.loads(deployed.run(*command)[0])
    third = json.loads(deployed.run(*command)[0])
    assert (first["generation"], second["generation"], third["generation"]) == (1, 2, 2)
    assert second["outputs"]["ClusterId"] != first["outputs"]["ClusterId"]
    assert third["changed"] is False
    after = deployed.resources("cluster")
    assert set(before.items()) - set(after.items()) == {
        (name, each) for name, each in before.items() if each == first["outputs"]["ClusterId"]
    }


@pytest.mark.end_to_end
def test_missing_libraries_are_reported_before_any_call_to_aws(user, tmp_path, messages) -> None:
    other = CommandUser(user.aws, tmp_path)
    (other.repository / "build").unlink()
    other.write_topology("reads", f"{TRAINING}inputs: [s3://my-reviews]\n")
    output, errors = other.run("deploy", "reads", "--owner", "ada", "--yes", status=1)
    assert output == ""
    messages.check(errors.rstrip())


@pytest.mark.parametrize(("empty", "kept"), [(False, False), (True, False), (False, True)])
def test_an_update_that_would_delete_data_is_refused(empty, kept, monkeypatch, messages) -> None:
    made = {"PhysicalResourceId": "shoal-own", "ResourceType": "AWS::S3::Bucket"}
    request = deploy.DeployOptions(
        topology=Mock(data=Mock(bucket="given-instead"), region="us-east-1"),
        source="pair",
        deployment="pair",
        owner="ada",
    )
    request.__dict__["account"] = Mock(items=lambda *_, **__: [made])
    stack = {"StackId": "arn", "Outputs": [{"OutputKey": names.OUTPUT_DATA_BUCKET, "OutputValue": "shoal-own"}]}
    changed = Mock(side_effect=EOFError)
    for module, name, answer in (
        (deploy, "_refuse_others", None),
        (deploy, "_read_guard", None),
        (deploy, "_refuse_during_training", None),
        (deploy.stacks, "wait_until_deployable", stack),
        (deploy, "why_kept", ("it is kept" if kept else "", [])),
        (deploy, "is_empty", empty),
    ):
        monkeypatch.setattr(module, name, Mock(return_value=answer))
    monkeypatch.setattr(deploy, "_generation", changed)  # the next step
    with pytest.raises(EOFError) if empty or kept else messages.raises(ShoalError):
        deploy.deploy(request)
    assert changed.called == (empty or kept)


@pytest.mark.parametrize(("budget", "spent"), [(2.0, None), (2.0, 1.99), (None, 9.0), (2.0, 2.0), (0.05, 0.08)])
def test_a_budget_that_is_already_spent_is_refused(budget, spent, messages) -> None:
    request = deploy.DeployOptions(
        topology=Mock(guard=Mock(budget=budget)), source="pair", deployment="pair", owner="ada"
    )
    with messages.raises(ShoalError) if budget and spent and budget <= spent else nullcontext():
        deploy._refuse_spent_budget(request, Mock(spent=spent))


def test_running_nodes_refuse_a_deployment_and_the_message_says_how_to_end_them(monkeypatch, messages) -> None:
    group = {"AutoScalingGroupName": "g1", "DesiredCapacity": 1}
    request = deploy.DeployOptions(topology=Mock(), source="pair", deployment="pair", owner="ada")
    request.__dict__["account"] = Mock()
    monkeypatch.setattr(deploy.fleet, "scaling_groups", lambda *_: [(group, {names.TAG_START: "train"})])
    with messages.raises(ShoalError):
        deploy._refuse_during_training(request)


@pytest.mark.parametrize("looks", ["CREATE_IN_PROGRESS", "UPDATE_COMPLETE", None, "interrupted"])
def test_an_interrupt_says_what_continues_even_if_another_one_follows(looks, monkeypatch, messages) -> None:
    request = deploy.DeployOptions(topology=Mock(), source="pair", deployment="pair", owner="ada")
    request.__dict__["account"] = Mock()
    stack = looks and {"StackName": "Shoal-pair", "StackStatus": looks}
    second = Interrupt(signal.SIGINT) if looks == "interrupted" else None
    monkeypatch.setattr(deploy.stacks, "describe", Mock(return_value=stack, side_effect=second))
    monkeypatch.setattr(deploy.time, "sleep", lambda _: None)
    monkeypatch.setattr(deploy, "_refuse_others", Mock(side_effect=Interrupt(signal.SIGINT)))
    notes: list[str] = []
    with reporting(Mock(note=notes.append)), pytest.raises(Interrupt):
        deploy.deploy(request)
    messages.check("\n".join(notes))


MOVES = {
    "deploy": [None, "REVIEW_IN_PROGRESS", "CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"],
    "wait": ["CREATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "DELETE_IN_PROGRESS"],
    "delete": ["ROLLBACK_COMPLETE", "DELETE_FAILED"],
    "roll back": ["UPDATE_ROLLBACK_FAILED"],
}


@pytest.mark.parametrize("move", MOVES)
def test_the_state_of_a_stack_decides_what_precedes_a_deployment(move) -> None:
    assert {next_action(status) for status in MOVES[move]} == {move}


STACK = "arn:aws:cloudformation:us-east-1:000000000000:stack/Shoal-demo/1"


def event(number: int, resource: str, status: str) -> dict[str, str]:
    return {
        "EventId": str(number),
        "LogicalResourceId": resource,
        "ResourceStatus": status,
        "StackId": STACK,
        "PhysicalResourceId": STACK if resource == "Shoal-demo" else resource.lower(),
    }


def test_the_bar_starts_with_the_first_resource_and_counts_complete_ones(monkeypatch) -> None:
    events = [event(0, "Old", "CREATE_COMPLETE"), event(1, "Shoal-demo", "UPDATE_IN_PROGRESS")]
    monkeypatch.setattr(stacks, "events", lambda *_: events[::-1])
    shown = Mock()
    view = _StackView(None, "Shoal-demo", {"0"})
    with reporting(shown):
        view.look(3)
    assert shown.mock_calls == [call.tick()]
    events += [event(2, "Role", "CREATE_COMPLETE"), event(3, "Bucket", "CREATE_IN_PROGRESS")]
    with reporting(shown):
        view.look(3)
        events += [event(4, "Bucket", "CREATE_COMPLETE")]
        view.look(3)
    bucket = call.say(now="Bucket")
    calls = [each for each in shown.mock_calls if each != call.tick()]
    assert calls == [call.stage("CloudFormation", 3, unit="resource"), bucket, call.at(1), bucket, call.at(2)]


@pytest.mark.parametrize(
    ("stack", "outcomes"),
    [("deleted", []), ("deleted", [UNVERIFIED]), ("deleted", [LEFT]), ("DELETE_FAILED: x", [])],
    ids=["deleted", "unverified", "left", "failed"],
)
def test_only_deleted_resources_are_reported_as_deleted(monkeypatch, messages, stack, outcomes) -> None:
    things = [FoundResource(kind="instance", identifier="i-1", billed=True, outcome=each) for each in outcomes]
    monkeypatch.setattr(failure, "first_boot", lambda *_, **__: [])
    monkeypatch.setattr(teardown, "destroy", lambda *_, **__: DestroyResult(stack=stack, things=things))
    failed = {"StackName": "Shoal-mine", "StackStatus": "CREATE_FAILED"}
    messages.check(failure.clean_up("mine", Account(), failed))
