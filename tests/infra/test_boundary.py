import re
from pathlib import Path

import pytest
import yaml
from shoal_local_aws.permissions import identities
from shoal_local_aws.seams import identity

from infra import policies
from tests.infra.handled import check, distinct, statements
from tests.infra.invariants import MANAGED_POLICIES
from tests.infra.replay import is_allowed, unneeded

BOUNDARY = [statements(policies.document(policies.BOUNDARY))]
LIMITED = yaml.safe_load(Path(__file__).with_name("managed.yaml").read_text("utf-8"))
"""Grants of AWS's managed policies that the boundary does not allow, with reasons, by policy, action and resource."""
COPIES = Path(str(identities.__file__)).parent / "managed"


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
    yield from map(managed_statements, stack.resolved(role["Properties"].get("ManagedPolicyArns", [])))


def managed_statements(arn):
    record = identity.managed_policies[arn]
    return statements(record["Versions"][record["DefaultVersionId"]]["Document"])


def is_limited(check):
    return any(check.resource in found.get(check.action, {}) for found in LIMITED.values())


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


@pytest.mark.parametrize("policy", sorted(MANAGED_POLICIES))
def test_the_boundary_differs_from_the_policies_of_aws_only_with_a_reason(policy):
    copy = (COPIES / f"{policy}.yaml").read_text("utf-8")
    assert re.match(
        rf"# Source: AWS managed policy {policy.rpartition('/')[2]}, version v\d+ of \d{{4}}-\d\d-\d\d, ", copy
    )
    own = [managed_statements(f"arn:aws:iam::aws:policy/{policy}")]
    refused = {(each.action, each.resource) for each in requests(own) if not is_allowed(each, BOUNDARY)}
    assert refused == {(action, each) for action, found in LIMITED[policy].items() for each in found}


def test_emr_makes_no_endpoint_in_a_network_without_its_tag():
    own = [managed_statements("arn:aws:iam::aws:policy/service-role/AmazonEMRServicePolicy_v2")]
    vpc = check("ec2:CreateVpcEndpoint", "arn:aws:ec2:us-east-1:111122223333:vpc/vpc-1")
    tags = {"aws:ResourceTag/for-use-with-amazon-emr-managed-policies": "true"}
    assert [is_allowed(vpc, own), is_allowed(check(vpc.action, vpc.resource, **tags), own)] == [False, True]


@pytest.mark.slow
def test_no_role_of_any_topology_is_limited(handled):
    asked = distinct(each for stack in handled.values() for each in granted(stack))
    assert len(asked) > 500
    assert [each for each in asked if not is_allowed(each, BOUNDARY) and not is_limited(each)] == []


@pytest.mark.slow
def test_a_role_needs_each_part_of_the_boundary_or_a_reason_explains_it(handled):
    asked = distinct(
        each for name in ("with-all", "in-network", "without-nat", "starter") for each in granted(handled[name])
    )
    found = {(grant.statement["sid"], grant.value) for grant in unneeded(asked, BOUNDARY)}
    explained = {(sid, value) for sid, each in policies.reasons(policies.BOUNDARY).items() for value in each}
    assert found == explained
