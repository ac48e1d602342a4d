from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import names
from infra import addresses
from tests.infra.invariants import as_list, of_type, the
from tests.infra.pages import demo

NAMED = ("s3://theirs", "s3://ours/a/b/", "s3://ours/a/c")
ROLES = ("PreprocessingNodeRole", "TrainingNodeRole")
KEYS = st.text("abc/", max_size=6) | st.sampled_from(["a/b", "a/c"]).flatmap(
    lambda name: st.text("abc/", max_size=3).map(lambda more: name + more)
)


@pytest.fixture(scope="module")
def resources(templates):
    return templates.resources(demo(inputs=NAMED))


def granted(resources, role):
    """Return the statements of the role's policy for buckets with literal names, with plain ARNs."""
    found = []
    for statement in the(resources, "AWS::IAM::Policy", role)[1]["PolicyDocument"]["Statement"]:
        places = [place["Fn::Join"][1] for place in as_list(statement["Resource"]) if "Fn::Join" in place]
        plain = [place[-1].removeprefix(":s3:::") for place in places if str(place[-1]).startswith(":s3:::")]
        if plain:
            found.append({**statement, "Resource": plain})
    return found


def may_read(statements, bucket, key):
    return any(
        statement["Action"] == "s3:GetObject"
        and any(fnmatchcase(f"{bucket}/{key}", each) for each in statement["Resource"])
        for statement in statements
    )


def may_list(statements, bucket, prefix):
    conditions = [
        each.get("Condition", {"StringLike": {"s3:prefix": ["*"]}})
        for each in statements
        if each["Action"] == "s3:ListBucket" and each["Resource"] == [bucket]
    ]
    return any(fnmatchcase(prefix, pattern) for each in conditions for pattern in each["StringLike"]["s3:prefix"])


@pytest.mark.parametrize("role", ROLES)
def test_an_address_is_accepted_if_the_role_may_list_and_read_it(role, resources):
    statements = granted(resources, role)

    @given(st.sampled_from(["theirs", "ours", "others"]), KEYS)
    def agree(bucket, key):
        accepted = any(addresses.contains(each, f"s3://{bucket}/{key}") for each in NAMED)
        assert may_read(statements, bucket, key) is accepted
        assert may_list(statements, bucket, key) is accepted

    agree()


def test_the_maximum_of_inputs_fits_into_a_roles_policy(templates):
    bucket = "b" * 63
    longest = [f"s3://{bucket}/{number}".ljust(addresses.LONGEST, "x") for number in range(addresses.MOST)]
    whole = {"inputs": longest, "data": {"bucket": bucket}}
    found = templates.resources(demo(**whole), deployment="x" * names.DEPLOYMENT_LENGTH)
    assert not of_type(found, "AWS::IAM::ManagedPolicy")  # the CDK splits a larger policy
