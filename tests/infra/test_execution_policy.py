"""The policy of CloudFormation's execution role allows what the templates' resources need, and nothing else."""

import json

import pytest

from embedded.permissions.record import Check
from infra import policies
from tests.infra.handled import ACCOUNT, REGION, Handled, check, statements
from tests.infra.replay import is_allowed, unneeded

POLICY = [statements(policies.document(policies.EXECUTION))]
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/{policies.BOUNDARY}"


def role(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def test_it_fits_a_managed_policy() -> None:
    text = json.dumps(policies.document(policies.EXECUTION), separators=(",", ":"))
    assert len(text) <= policies.MOST_CHARACTERS


def test_every_topology_can_be_created_updated_and_deleted(handled: dict[str, Handled]) -> None:
    asked = asked_of(list(handled.values()))
    assert len(asked) > 1000
    assert [each for each in asked if not is_allowed(each, POLICY)] == []


def test_every_part_of_it_is_needed_or_has_a_reason(handled: dict[str, Handled]) -> None:
    asked = asked_of([handled[name] for name in ("with-all", "without-nat")])
    found = {(grant.statement["sid"], grant.value) for grant in unneeded(asked, POLICY)}
    explained = {(sid, value) for sid, each in policies.reasons(policies.EXECUTION).items() for value in each}
    assert found == explained


def asked_of(stacks: list[Handled]) -> list[Check]:
    checks = (each for stack in stacks for each in stack.checks())
    return [*{(each.action, each.resource, repr(each.context)): each for each in checks}.values()]


BOUND = {"iam:PermissionsBoundary": BOUNDARY}
REFUSED = {
    "a role without a boundary": check("iam:CreateRole", role("Shoal-x-Role")),
    "a role with another boundary": check(
        "iam:CreateRole", role("Shoal-x-Role"), **{"iam:PermissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/other"}
    ),
    "a role of another name": check("iam:CreateRole", role("Admin"), **BOUND),
    "a policy of a role without a boundary": check("iam:PutRolePolicy", role("Shoal-x-Role")),
    "AWS's policy for a role without a boundary": check("iam:AttachRolePolicy", role("Shoal-x-Role")),
    "another boundary for a role": check(
        "iam:PutRolePermissionsBoundary",
        role("Shoal-x-Role"),
        **{"iam:PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess"},
    ),
    "a role without its boundary": check("iam:DeleteRolePermissionsBoundary", role("Shoal-x-Role"), **BOUND),
    "who may take another role": check("iam:UpdateAssumeRolePolicy", role("Admin")),
    "another boundary by its name": check("iam:CreatePolicyVersion", BOUNDARY),
    "somebody else's role for a node": check(
        "iam:PassRole", role("Admin"), **{"iam:PassedToService": "ec2.amazonaws.com"}
    ),
    "a role for another service": check(
        "iam:PassRole", role("Shoal-x-Role"), **{"iam:PassedToService": "glue.amazonaws.com"}
    ),
    "a user": check("iam:CreateUser", f"arn:aws:iam::{ACCOUNT}:user/Shoal-x"),
    "a bucket of another name": check("s3:CreateBucket", "arn:aws:s3:::somebody-elses"),
    "the objects of a bucket": check("s3:GetObject", "arn:aws:s3:::shoal-x-data/runs/1"),
    "a function of another name": check(
        "lambda:UpdateFunctionCode", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:theirs"
    ),
    "the end of machines": check("ec2:TerminateInstances", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"),
    "a parameter of the account": check("ssm:GetParameters", f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/secret"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_shoal_does_not_need_is_refused(what: str) -> None:
    assert not is_allowed(REFUSED[what], POLICY)
