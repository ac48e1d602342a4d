"""An acceptance run has limits, a report and a role; a whole run passes on the emulator."""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError
from shoal_local_aws.aws import ACCOUNT

from common.errors import ShoalError
from infra import policies, topology
from shoal.aws import cdk
from shoal.aws.account import Account
from shoal.aws.policies import present
from shoal.deployments.removal.inventory import inventory, left_over
from tools.acceptance_aws.__main__ import _parser, main, require_price_within
from tools.acceptance_aws.account import ROLE, Setup
from tools.acceptance_aws.beliefs import CONTRADICTED, BeliefResult
from tools.acceptance_aws.life import AcceptanceRun, StepFailedError, maximum_cost
from tools.acceptance_aws.report import DONE, FAILED, Report, Step

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def made(**fields: Any) -> Report:
    account = {"emulated": False, "region": "us-east-1", "topology": "starter", "deployment": "mine"}
    limits = {"max_dollars": 10, "hours": 2, "predicted": 1.59}
    return Report(**{**account, **limits, "started": "then", "ended": "later", "complete": True, **fields})


def test_a_predicted_cost_above_the_limit_is_refused_before_any_creation(messages) -> None:
    require_price_within(10, 10)
    with messages.raises(ShoalError):
        require_price_within(10.01, 10)


@pytest.mark.parametrize("option", ["--max-dollars", "--hours"])
def test_limits_are_finite_numbers_above_0(option, messages, capsys):
    assert 0.5 in vars(_parser().parse_args([option, "0.5"])).values()
    for text in ("nan", "ten", "inf", "0", "-1"):
        with pytest.raises(SystemExit):
            _parser().parse_args([f"{option}={text}"])
        messages.check(capsys.readouterr().err.splitlines()[-1])


@pytest.mark.parametrize(
    ("status", "dollars"),
    [
        ({"created": "2026-01-01T10:00:00+00:00", "as_of": None, "spent": None, "dollars_an_hour_at_most": 0.5}, 1.0),
        ({"created": "x", "as_of": "2026-01-01T11:00:00+00:00", "spent": 3.0, "dollars_an_hour_at_most": 0.5}, 3.5),
        ({"created": "2026-01-01T10:00:00+00:00", "as_of": None, "spent": None, "dollars_an_hour_at_most": None}, None),
        ({}, None),
    ],
)
def test_time_since_the_last_count_costs_as_if_everything_ran(status, dollars) -> None:
    assert maximum_cost(status, NOW) == dollars


def test_a_run_stops_at_nine_tenths_of_its_limit() -> None:
    run = Mock(_report=Mock(max_dollars=10))
    status = {"created": "x", "as_of": NOW.isoformat(), "dollars_an_hour_at_most": 0.0}
    AcceptanceRun._require_within(run, {**status, "spent": 8.99})
    with pytest.raises(StepFailedError, match=r"has cost \$9\.00"):
        AcceptanceRun._require_within(run, {**status, "spent": 9.0})


def test_a_report_passes_if_every_step_is_done_and_nothing_is_left() -> None:
    done, failed = Step(name="a", outcome=DONE), Step(name="b", outcome=FAILED)
    assert made(steps=[done]).passed
    wrong = {"beliefs": [BeliefResult(sentence="It is so.", outcome=CONTRADICTED, detail="no")]}
    for changes in ({"steps": [done, failed]}, {"left": ["a bucket"]}, {"ended": ""}, {"complete": False}, wrong):
        assert not made(**{"steps": [done], **changes}).passed


def test_a_report_lists_steps_and_costs(tmp_path) -> None:
    report = made(
        steps=[Step(name="shoal deploy", outcome=FAILED, seconds=1.25, detail="a|b\nc")],
        left=["role ShoalAcceptance: it is in use"],
        counted=0.5,
        beliefs=[BeliefResult(sentence="It is so.", outcome=CONTRADICTED, detail="a|b")],
    )
    report.write(tmp_path)
    assert json.loads((tmp_path / "report.json").read_text()) == {**asdict(report), "passed": False}


@pytest.mark.usefixtures("aws")
def test_the_role_is_created_once_and_removed() -> None:
    setup = Setup(Account())
    for _ in range(2):
        assert setup.create() == "the role ShoalAcceptance has the policy ShoalUser"
    keys = setup.environment()
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    role = boto3.client("sts", **{name.lower(): keys[name] for name in names})
    assert f":assumed-role/{ROLE}/" in role.get_caller_identity()["Arn"]
    left = datetime.fromisoformat(keys["AWS_CREDENTIAL_EXPIRATION"]) - datetime.now(UTC)
    assert timedelta(minutes=50) < left <= timedelta(hours=1)
    for minutes, renewed in ((52, False), (49, True)):
        setup._session = {**setup._session, "Expiration": datetime.now(UTC) + timedelta(minutes=minutes)}
        assert (setup.environment()["AWS_SESSION_TOKEN"] != keys["AWS_SESSION_TOKEN"]) == renewed
    assert [setup.remove(), setup.remove()] == [[], []]
    with pytest.raises(ClientError, match="NoSuchEntity"):
        boto3.client("iam").get_role(RoleName=ROLE)


@pytest.mark.usefixtures("aws")
def test_a_different_policy_of_the_account_is_reported_and_kept(messages) -> None:
    iam = boto3.client("iam")
    nothing = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]}
    arn = f"arn:aws:iam::{ACCOUNT}:policy/{policies.USER}"
    with suppress(iam.exceptions.NoSuchEntityException):  # another test created it
        iam.delete_policy(PolicyArn=arn)
    iam.create_policy(PolicyName=policies.USER, PolicyDocument=json.dumps(nothing))
    setup = Setup(Account())
    with messages.raises(ShoalError):
        setup.create()
    assert setup.remove() == []
    assert present(Account(), policies.USER) == nothing
    iam.delete_policy(PolicyArn=arn)


@pytest.mark.usefixtures("aws")
def test_a_role_that_no_run_created_is_reported_and_kept(messages) -> None:
    iam = boto3.client("iam")
    iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument='{"Version": "2012-10-17", "Statement": []}')
    setup = Setup(Account())
    with messages.raises(ShoalError):
        setup.create()
    assert setup.remove() == []
    assert iam.list_attached_role_policies(RoleName=ROLE)["AttachedPolicies"] == []
    iam.delete_role(RoleName=ROLE)


@pytest.mark.usefixtures("aws")
def test_a_run_above_the_limit_creates_nothing(tmp_path, capsys) -> None:
    assert main(["--max-dollars", "1", "--yes", "--output", os.fspath(tmp_path)]) == 1
    assert "the limit of $1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("aws")
def test_the_topology_of_a_run_has_its_limits_and_all_fields(tmp_path) -> None:
    source = cdk.TOPOLOGIES / "one-node.yaml"
    run = AcceptanceRun(made(max_dollars=7), Account(), source=source, folder=tmp_path)
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(run._topology()))
    spec = topology.load(str(tmp_path / "own.yaml"), tmp_path)
    assert (spec.preprocesses_on_node, spec.guard.budget, spec.guard.max_hours) == (True, 7, 2)


@pytest.mark.soak
def test_a_whole_run_passes_on_the_emulator_and_leaves_nothing(aws, tmp_path) -> None:
    before = inventory()
    command = [sys.executable, "-m", "tools.acceptance_aws", "--yes", "--output", os.fspath(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    left = {each for found in left_over(before, inventory()).values() for each in found}
    stays = re.compile("cdk|Shoal(Toolkit|Execution|Boundary|User)")
    assert {each for each in left if not stays.search(each)} == set(), aws.log_tail()
    [path] = tmp_path.glob("*/report.json")
    assert done.returncode == 0, f"{done.stderr}\n{path.read_text()}"
    report = json.loads(path.read_text())
    assert (report["passed"], report["left"], report["emulated"]) == (True, [], True)
    assert {each["outcome"] for each in report["steps"]} == {DONE}
    assert [each["name"] for each in report["steps"]] == [
        *("beliefs of the emulator", "policies and role", "cdk bootstrap", "shoal deploy", "shoal preprocess"),
        *("shoal train", "terminate a node while it trains", "another node continues", "shoal attach", "shoal destroy"),
    ]
    assert 0 < report["counted"] < report["predicted"]
    assert (path.parent / "model" / "summary.json").exists()
