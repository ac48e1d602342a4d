import re
from itertools import chain
from pathlib import Path

import pytest
import yaml
from shoal_local_aws.permissions.handlers import handlers
from shoal_local_aws.permissions.record import Check

from infra import policies
from tests.infra.authorization import known_actions
from tests.infra.aws_lines import shown_lines
from tests.infra.handled import statements
from tests.infra.replay import is_allowed, unneeded
from tools.calls import find_calls

PRINCIPAL = "arn:aws:iam::000000000000:user/person"
POLICY = [statements(policies.document(policies.USER))]
TABLES = yaml.safe_load(Path(__file__).with_name("user_policy.yaml").read_text("utf-8"))
OWN = TABLES["own"]
READ = ("Describe", "Get", "List", "View")


def written(row):
    return Check(PRINCIPAL, row[0], row[1], "allowed", context=dict(*row[2:]))


def wanted():
    """Return the actions of all operations of the commands, except GetCallerIdentity, which needs no permission."""
    actions = {
        action_of(service, operation)
        for (service, operation), rooms in find_calls().items()
        if not rooms <= {"infra", "jobs", "shoal_guard", "trainer"}
        if f"{service} {operation}" not in TABLES["preparing"]
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
    asked = [written(each) for each in [*TABLES["beside"], *chain(*TABLES["lines"].values())]]
    for action in sorted(wanted()):
        allowed = [each for each in requests(action) if is_allowed(each, POLICY)]
        assert allowed, f"{policies.USER} does not allow {action}"
        asked += allowed
    found = {(grant.statement["sid"], grant.value) for grant in unneeded(asked, POLICY)}
    assert found == {(sid, grant) for sid, grants in policies.reasons(policies.USER).items() for grant in grants}


def test_each_aws_command_that_code_and_documents_show_is_in_the_table_of_its_readers():
    assert set(shown_lines()) == {*TABLES["lines"], *TABLES["lines for others"]}, (
        "tests/infra/user_policy.yaml names who reads each command: `lines` if ShoalUser must allow it"
    )
    assert not TABLES["lines"].keys() & TABLES["lines for others"].keys()


@pytest.mark.parametrize("line", TABLES["lines"])
def test_the_policy_allows_each_aws_command_that_its_users_read(line):
    assert [each for each in map(written, TABLES["lines"][line]) if not is_allowed(each, POLICY)] == []


def test_a_shell_opens_only_on_nodes_of_deployments_and_in_own_sessions():
    others = [["ssm:StartSession", "arn:aws:ec2:us-east-1:000000000000:instance/i-1"]]
    session = "arn:aws:ssm:us-east-1:000000000000:session/AIDA2-0a"
    others += [[action, session, {"aws:userid": "AIDA1"}] for action in ("ssm:ResumeSession", "ssm:TerminateSession")]
    assert not any(is_allowed(written(each), POLICY) for each in others)


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


NEWER = set(yaml.safe_load(Path(__file__).with_name("authorization.yaml").read_text("utf-8"))["newer"])


@pytest.mark.lint
@pytest.mark.parametrize("where", ["operations", "handlers"])
def test_the_emulator_uses_actions_that_iam_has(where):
    keys = ("create", "read", "update", "delete")
    used = {
        "operations": {action_of(*call) for call in find_calls()},
        "handlers": {action for kind in handlers().values() for key in keys for action in kind.get(key, ())},
    }[where]
    assert [action for action in sorted(used - NEWER) if not known_actions(action)] == []
