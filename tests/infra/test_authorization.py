"""Statements of all policies name only actions, resource types and condition keys that IAM knows together.

A statement with a mismatch is valid, but never allows what it is for.
"""

from pathlib import Path

import pytest
import yaml
from shoal_local_aws.permissions import handlers, resources

from infra import policies
from tests.infra.authorization import known_actions, unfit_parts
from tests.infra.invariants import as_list

TABLES = yaml.safe_load(Path(__file__).with_name("authorization.yaml").read_text("utf-8"))
OWN = [(policy, each) for policy in policies.POLICIES for each in policies.document(policy)["Statement"]]


def of_topologies(handled):
    """Yield the statements of all policies in stacks of all topologies, each with the logical ID of its resource."""
    for stack in handled.values():
        for name, each in stack.resources.items():
            if document := each.get("Properties", {}).get("PolicyDocument"):
                yield from ((name, statement) for statement in stack.resolved(document)["Statement"])


def findings(statements):
    """Return policy, action or resource, and part for each mismatch that is not accepted."""
    found = {
        (policy, subject, part)
        for policy, each in statements
        if each["Effect"] == "Allow" and each["Action"] != ["*"]
        for subject, part in unfit_parts(each)
    }
    return [each for each in sorted(found) if each[2] not in TABLES["accepted"].get(each[1], {})]


@pytest.mark.lint
def test_policies_of_the_account_have_no_part_that_never_matches():
    assert findings(OWN) == []


@pytest.mark.lint
def test_policies_of_stacks_have_no_part_that_never_matches(handled):
    statements = [*of_topologies(handled)]
    assert len(statements) > 500
    assert findings(statements) == []


@pytest.mark.lint
def test_policies_allow_actions_that_iam_has(handled):
    named = {action for _, each in [*OWN, *of_topologies(handled)] for action in as_list(each["Action"])} - {"*"}
    assert len(named) > 200
    assert [action for action in sorted(named - set(TABLES["newer"])) if not known_actions(action)] == []


@pytest.mark.lint
@pytest.mark.parametrize(
    ("actions", "resource", "key", "found"),
    [
        ("ec2:DescribeInstances", "arn:aws:ec2:*:*:instance/*", None, {"Resource", "Action"}),
        ("s3:ListBucket", "arn:aws:s3:::shoal-*/runs", None, {"Resource", "Action"}),
        ("ec2:DeleteVpcEndpoints", "arn:aws:ec2:*:*:security-group/*", None, {"Resource", "Action"}),
        ("ec2:DeleteVpcEndpoints", "*", "ec2:Vpc", {"ec2:Vpc"}),
        ("ec2:DeleteSecurityGroup", "*", "ec2:Vpc", set()),
        (
            "elasticmapreduce:ListClusters",
            "*",
            "aws:ResourceTag/shoal:deployment",
            {"aws:ResourceTag/shoal:deployment"},
        ),
        ("ec2:RunInstances", "arn:aws:ec2:*:*:subnet/*", "ec2:InstanceProfile", {"ec2:InstanceProfile"}),
    ],
)
def test_a_part_that_never_matches_is_found(actions, resource, key, found):
    condition = {"StringEquals": {key: "x"}} if key else {}
    statement = {"Effect": "Allow", "Action": [actions], "Resource": [resource], "Condition": condition}
    assert {part for _, part in unfit_parts(statement)} == found


def test_each_service_to_which_a_role_is_passed_has_a_source(handled):
    statements = [each for _, each in [*OWN, *of_topologies(handled)]]
    conditions = [one for each in statements for one in each.get("Condition", {}).values()]
    named = {value for one in conditions for value in as_list(one.get("iam:PassedToService", []))}
    emulated = {service for each in handlers.handlers().values() for service in each.get("passes", {})}
    emulated |= {service for each in resources._PASSED.values() for service in each.values()}
    assert named == set(TABLES["passed to"])
    assert emulated - {"", "cloudformation.amazonaws.com"} <= named
