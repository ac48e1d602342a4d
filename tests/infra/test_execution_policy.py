from pathlib import Path

import pytest
import yaml

from infra import policies
from tests.infra.handled import check, distinct, statements
from tests.infra.replay import is_allowed, unneeded

POLICY = [statements(policies.document(each)) for each in policies.EXECUTION]


def test_every_topology_can_be_created_updated_and_deleted(handled):
    asked = distinct(each for stack in handled.values() for each in stack.checks())
    assert len(asked) > 1000
    assert [each for each in asked if not is_allowed(each, POLICY)] == []


def test_every_part_of_the_policy_is_needed_or_has_a_reason(handled):
    asked = distinct(each for name in ("with-all", "without-nat") for each in handled[name].checks())
    found = {(grant.statement["sid"], grant.value) for grant in unneeded(asked, POLICY)}
    reasons = [policies.reasons(each) for each in policies.EXECUTION]
    explained = {(sid, value) for found in reasons for sid, each in found.items() for value in each}
    assert found == explained


REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text("utf-8"))
POLICIES = {
    "boundary": [statements(policies.document(policies.BOUNDARY))],
    "execution": POLICY,
    "user": [statements(policies.document(policies.USER))],
}


@pytest.mark.parametrize(("policy", "what"), [(policy, what) for policy in REFUSED for what in REFUSED[policy]])
def test_actions_that_shoal_does_not_need_are_refused(policy, what):
    row = REFUSED[policy][what]
    assert not is_allowed(check(row["action"], row["on"], **row.get("with", {})), POLICIES[policy])


def test_no_role_of_a_deployment_writes_into_a_bucket_of_another_account():
    own = {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}}
    boundary = policies.document(policies.BOUNDARY)["Statement"]
    writing = [each for each in boundary if {"s3:PutObject", "s3:DeleteObject"} & {*each["Action"]}]
    assert [each["Condition"] for each in writing] == [own, own]
