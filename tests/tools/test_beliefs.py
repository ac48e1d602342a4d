"""Every refusal of the emulator has a source or is a belief, and an acceptance run checks the beliefs."""

import boto3
import pytest
from shoal_local_aws.faults.kinds import Denied

from shoal.aws.account import Account
from tools import beliefs
from tools.acceptance_aws.beliefs import CONFIRMED, CONTRADICTED, NOT_CHECKED, check, check_all

NAME = {"Name": "shoal-acceptance"}
DELETION = {"service": "emr", "operation": "delete_security_configuration", "parameters": NAME}
REQUEST = {**DELETION, "code": "InvalidRequestException"}


@pytest.mark.lint
def test_every_refusal_of_the_emulator_is_explained():
    assert list(beliefs.problems()) == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f():\n if a:\n  raise RefusedError('Code', 'No.')", [3]),
        ("def f():\n # Rule: A.\n if a:\n  raise RefusedError('Code', 'No.')", []),
        ("def f():\n if a:\n  # Belief: A.\n  return ec2.error(code, f'No {a}.', 400)", []),
        ("# Rule: A.\ndef f():\n return ec2.error(code, f'No {a}.', 400)", [3]),
        ("def f():\n raise RefusedError('Code', 'The embedded AWS does not support it.')", []),
        ("def f():\n m = 'A is not emulated.'\n raise RefusedError('Code', m)", []),
        ("def f():\n m = 'A is not emulated.'\n if m := a():\n  raise RefusedError('Code', m)", [4]),
        ("def f():\n return ec2.error(refusal.code, str(refusal), 400)", []),
    ],
)
def test_refusals_without_a_rule_or_a_belief_are_found(source, lines):
    assert beliefs.unexplained(source) == lines


def test_a_rule_has_a_source_and_a_belief_has_a_check(messages):
    for comment in ("# Rule: It is so.", "# Rule: It is so. Check: a", "# Belief: It is so. Source: b/c#1."):
        with messages.raises(ValueError):
            list(beliefs._rules_in("emr/api.py", comment))


def test_a_source_can_be_looked_up():
    assert all(map(beliefs._is_source, ("botocore emr ListSteps", '"A title"', "a/b#1", "aws.amazon.com/emr")))
    assert not any(map(beliefs._is_source, ("botocore emr ListStep", "botocore er ListSteps", "common knowledge")))


def test_the_page_lists_beliefs_before_rules():
    checked, unchecked, rules = beliefs.page().split("\n## ")[1:]
    tables = {"Check": checked, "No check": unchecked, "Source": rules}
    for rule in beliefs.rules():
        assert f"| {rule.sentence} | {rule.place} |" in tables[rule.kind]


def test_checks_confirm_the_emulators_beliefs_and_leave_nothing(aws):
    results = {each.sentence: each.outcome for each in check_all(Account())}
    assert results == {each.sentence: CONFIRMED if each.kind == "Check" else NOT_CHECKED for each in beliefs.beliefs()}
    assert boto3.client("ec2").describe_launch_templates()["LaunchTemplates"] == []
    assert boto3.client("emr").list_security_configurations()["SecurityConfigurations"] == []


def test_only_a_different_answer_contradicts_a_belief(aws):
    assert check(Account(), REQUEST)[0] == CONFIRMED
    assert check(Account(), {**REQUEST, "code": "ValidationException"})[0] == CONTRADICTED
    assert check(Account(), {**REQUEST, "message": "is in use"})[0] == NOT_CHECKED
    with aws.faults.during(Denied(service="elasticmapreduce")):
        assert check(Account(), REQUEST)[0] == NOT_CHECKED
    creation = {"operation": "create_security_configuration", "parameters": {**NAME, "SecurityConfiguration": "{}"}}
    undone = {**REQUEST, **creation, "undo": ["delete_security_configuration", NAME]}
    assert check(Account(), undone) == (CONTRADICTED, "AWS accepts the request")
    assert boto3.client("emr").list_security_configurations()["SecurityConfigurations"] == []
