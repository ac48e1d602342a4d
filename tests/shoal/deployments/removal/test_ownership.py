"""Ownership of resources: similar names are distinguished, and tags are read in all of AWS's forms."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from common import names
from infra import topology
from shoal.aws.account import Account, connect, read_tags
from shoal.deployments.removal.kinds import KINDS
from shoal.deployments.removal.ownership import Ownership, generated_by
from tests.shoal.deployments.removal.test_sweep import ARNS

words = st.from_regex(r"[A-Za-z0-9]{1,8}", fullmatch=True)
deployments = st.lists(words, min_size=1, max_size=4).map("-".join)


@given(one=deployments, other=deployments, logical=words, letters=words)
def test_a_name_that_cloudformation_made_belongs_to_one_deployment(one, other, logical, letters):
    assume(one != other)
    name = f"{topology.stack_name(other)}-{logical}-{letters}"
    assert generated_by(topology.stack_name(other), name)
    assert not generated_by(topology.stack_name(one), name)


class Tagged(Ownership):
    """Owner without records from the tagging service and CloudFormation."""

    arns = ()
    stack_resources = frozenset()
    networks = frozenset()


@pytest.fixture(scope="module")
def account():
    return Account(connect("us-east-1"))


RECORDS = {
    "vpc": lambda deployment: {"Tags": [{"Key": names.TAG_DEPLOYMENT, "Value": deployment}]},
    "emr security configuration": lambda deployment: {"Name": f"Shoal-{deployment}-Security12345678-ABC"},
    "iam instance profile": lambda deployment: {
        "InstanceProfileName": f"Shoal-{deployment}-Profile12345678-ABC",
        "Roles": [],
    },
}


def test_the_tags_of_the_toolkits_bucket_are_not_read(account):
    claim = Tagged(account, "mine")
    assert not claim.may_own({"Name": "cdk-shoal-assets-111122223333-us-east-1"})
    assert claim.may_own({"Name": "shoal-mine-data12345678-abc"})


@pytest.mark.parametrize("kind", sorted(RECORDS))
@given(one=deployments, other=deployments)
def test_a_resource_belongs_to_its_own_deployment_only(account, kind, one, other):
    assume(one != other)
    claims = [Tagged(account, name) for name in (one, other)]
    assert [KINDS[kind].owned(claim, RECORDS[kind](one)) for claim in claims] == [True, False]


@given(one=deployments, other=deployments)
def test_a_parameter_belongs_to_a_deployment_by_its_whole_folder(account, one, other):
    assume(one != other)
    record = {"Name": names.extension_parameter(one)}
    assert KINDS["ssm parameter"].owned(Tagged(account, one), record)
    assert not record["Name"].startswith(f"/shoal/{other}/")


@pytest.mark.parametrize("tags", [[{"Key": "a", "Value": "b"}], [{"key": "a", "value": "b"}], {"a": "b"}])
def test_tags_are_read_in_all_of_their_forms(tags):
    assert read_tags(tags) == {"a": "b"}


def test_an_arn_names_one_resource_of_one_kind():
    kinds = {name: kind for name, kind in KINDS.items() if kind.arn}
    for name, (arn, identifier) in ARNS.items():
        assert {other: kind.identifier_in(arn) for other, kind in kinds.items() if kind.identifier_in(arn)} == {
            name: identifier
        }
    assert ARNS.keys() == kinds.keys()
    assert kinds["log group"].identifier_in("arn:aws:logs:R:A:log-group:/aws/lambda/x") == "/aws/lambda/x"
    subscription = "arn:aws:sns:us-east-1:000000000000:news:a-subscription"
    assert not any(kind.identifier_in(subscription) for kind in kinds.values())
