"""The boundary of the roles of deployments: it limits none of them in what its own policies allow, and nothing else."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from embedded.permissions import identities
from embedded.permissions.record import Check
from embedded.seams import identity
from infra import policies
from tests.infra.handled import ACCOUNT, REGION, Handled, check, statements
from tests.infra.replay import Policy, is_allowed, unneeded

BOUNDARY = [statements(policies.document(policies.BOUNDARY))]
LIKE_IT = f"arn:aws:iam::{ACCOUNT}:role/Shoal-x-Role"
DEFAULT_ROLES = {"arn:aws:iam::*:role/EMR_AutoScaling_DefaultRole", "arn:aws:iam::*:role/EMR_EC2_DefaultRole"}
"""Which EMR's policy lets its service pass; Shoal's clusters have roles of their own."""


def test_it_fits_a_managed_policy() -> None:
    text = json.dumps(policies.document(policies.BOUNDARY), separators=(",", ":"))
    assert len(text) <= policies.MOST_CHARACTERS


def granted(stack: Handled) -> Iterator[Check]:
    """What the roles of a stack may do by their own policies, as a request for each grant."""
    for logical, role in stack.resources.items():
        if role["Type"] == "AWS::IAM::Role":
            own = [*inline(stack, logical), *managed(stack, role)]
            yield from (each for each in requests(own) if is_allowed(each, own))


def inline(stack: Handled, role: str) -> Iterator[Policy]:
    for resource in stack.resources.values():
        if resource["Type"] == "AWS::IAM::Policy" and {"Ref": role} in resource["Properties"]["Roles"]:
            yield statements(stack.resolved(resource["Properties"]["PolicyDocument"]))


def managed(stack: Handled, role: dict[str, Any]) -> Iterator[Policy]:
    for arn in stack.resolved(role["Properties"].get("ManagedPolicyArns", [])):
        record = identity.managed_policies[arn]
        yield statements(record["Versions"][record["DefaultVersionId"]]["Document"])


def requests(own: list[Policy]) -> Iterator[Check]:
    for statement in (each for policy in own for each in policy if each["effect"] == "Allow"):
        context = {
            key: value[0] if isinstance(value, list) else value
            for operands in statement["conditions"].values()
            for key, value in operands.items()
        }
        for action in statement["actions"]:
            yield from (check(action, resource, **context) for resource in statement["resources"])


def asked_of(stacks: list[Handled]) -> list[Check]:
    checks = (each for stack in stacks for each in granted(stack))
    return [*{(each.action, each.resource, repr(each.context)): each for each in checks}.values()]


@pytest.fixture(scope="module", autouse=True)
def with_managed_policies() -> None:
    """AWS's policies, as the emulator has them."""
    identities.add_managed_policies()


@pytest.mark.slow
def test_no_role_of_any_topology_is_limited(handled: dict[str, Handled]) -> None:
    asked = asked_of(list(handled.values()))
    assert len(asked) > 500
    assert {(each.action, each.resource) for each in asked if not is_allowed(each, BOUNDARY)} == {
        ("iam:PassRole", role) for role in DEFAULT_ROLES
    }


@pytest.mark.slow
def test_every_part_of_it_is_needed_by_a_role_or_has_a_reason(handled: dict[str, Handled]) -> None:
    asked = asked_of([handled[name] for name in ("with-all", "in-network", "without-nat", "starter")])
    asked = [each for each in asked if each.resource not in DEFAULT_ROLES]
    found = {(grant.statement["sid"], grant.value) for grant in unneeded(asked, BOUNDARY)}
    explained = {(sid, value) for sid, each in policies.reasons(policies.BOUNDARY).items() for value in each}
    assert found == explained


REFUSED = {
    "a role": check("iam:CreateRole", LIKE_IT),
    "more for a role": check("iam:PutRolePolicy", LIKE_IT),
    "another boundary": check("iam:PutRolePermissionsBoundary", LIKE_IT),
    "no boundary": check("iam:DeleteRolePermissionsBoundary", LIKE_IT),
    "another text of the boundary": check("iam:CreatePolicyVersion", f"arn:aws:iam::{ACCOUNT}:policy/ShoalBoundary"),
    "a user's key": check("iam:CreateAccessKey", f"arn:aws:iam::{ACCOUNT}:user/admin"),
    "somebody else's role for a node": check(
        "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/Admin", **{"iam:PassedToService": "ec2.amazonaws.com"}
    ),
    "a role for a function": check("iam:PassRole", LIKE_IT, **{"iam:PassedToService": "lambda.amazonaws.com"}),
    "another role": check("sts:AssumeRole", LIKE_IT),
    "another function": check("lambda:UpdateFunctionCode", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:Shoal-x"),
    "a stack": check("cloudformation:CreateStack", f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/Shoal-x/1"),
    "the end of another stack": check(
        "cloudformation:DeleteStack", f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/theirs/1"
    ),
    "another bucket": check("s3:PutObject", "arn:aws:s3:::theirs/x"),
    "the end of another bucket": check("s3:DeleteBucket", "arn:aws:s3:::theirs"),
    "the end of another machine": check("ec2:TerminateInstances", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"),
    "a machine elsewhere": check("ec2:RunInstances", f"arn:aws:ec2:{REGION}:{ACCOUNT}:subnet/subnet-1"),
    "the end of another cluster": check(
        "elasticmapreduce:TerminateJobFlows", f"arn:aws:elasticmapreduce:{REGION}:{ACCOUNT}:cluster/j-1"
    ),
    "a parameter": check("ssm:GetParameters", f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/secret"),
    "a command": check("ssm:SendCommand", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_no_role_may_do_more_whatever_its_policies_say(what: str) -> None:
    assert not is_allowed(REFUSED[what], BOUNDARY)
