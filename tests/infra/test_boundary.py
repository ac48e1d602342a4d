import pytest
from shoal_local_aws.permissions import identities
from shoal_local_aws.seams import identity

from infra import policies
from tests.infra.handled import check, distinct, statements
from tests.infra.replay import is_allowed, unneeded

BOUNDARY = [statements(policies.document(policies.BOUNDARY))]
DEFAULT_ROLES = {"arn:aws:iam::*:role/EMR_AutoScaling_DefaultRole", "arn:aws:iam::*:role/EMR_EC2_DefaultRole"}
"""Roles that EMR's policy allows its service to pass. Shoal's clusters have their own roles."""


def granted(stack):
    for logical, role in stack.resources.items():
        if role["Type"] == "AWS::IAM::Role":
            own = [*inline(stack, logical), *managed(stack, role)]
            yield from (each for each in requests(own) if is_allowed(each, own))


def inline(stack, role):
    for resource in stack.resources.values():
        if resource["Type"] == "AWS::IAM::Policy" and {"Ref": role} in resource["Properties"]["Roles"]:
            yield statements(stack.resolved(resource["Properties"]["PolicyDocument"]))


def managed(stack, role):
    for arn in stack.resolved(role["Properties"].get("ManagedPolicyArns", [])):
        record = identity.managed_policies[arn]
        yield statements(record["Versions"][record["DefaultVersionId"]]["Document"])


def requests(own):
    for statement in (each for policy in own for each in policy if each["effect"] == "Allow"):
        context = {
            key: value[0] if isinstance(value, list) else value
            for operands in statement["conditions"].values()
            for key, value in operands.items()
        }
        for action in statement["actions"]:
            yield from (check(action, resource, **context) for resource in statement["resources"])


@pytest.fixture(scope="module", autouse=True)
def with_managed_policies():
    identities.add_managed_policies()


@pytest.mark.slow
def test_no_role_of_any_topology_is_limited(handled):
    asked = distinct(each for stack in handled.values() for each in granted(stack))
    assert len(asked) > 500
    assert {(each.action, each.resource) for each in asked if not is_allowed(each, BOUNDARY)} == {
        ("iam:PassRole", role) for role in DEFAULT_ROLES
    }


@pytest.mark.slow
def test_a_role_needs_each_part_of_the_boundary_or_a_reason_explains_it(handled):
    asked = distinct(
        each for name in ("with-all", "in-network", "without-nat", "starter") for each in granted(handled[name])
    )
    asked = [each for each in asked if each.resource not in DEFAULT_ROLES]
    found = {(grant.statement["sid"], grant.value) for grant in unneeded(asked, BOUNDARY)}
    explained = {(sid, value) for sid, each in policies.reasons(policies.BOUNDARY).items() for value in each}
    assert found == explained
