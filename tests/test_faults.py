"""What goes wrong in AWS while a deployment lives: it ends with a sentence, and nothing is left."""

from collections.abc import Iterator

import pytest
from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws
from shoal_local_aws.faults.kinds import (
    CreateFails,
    Denied,
    LateInterfaces,
    LateUpload,
    RevokedMeanwhile,
    StaleAnswer,
    Throttled,
)

from bootstrap.aws import cdk
from bootstrap.removal.inventory import inventory, left_over
from tests.person import Person

pytestmark = pytest.mark.end_to_end

TOPOLOGY = """
description: All of it
preprocessing:
  primary: {instance_type: m5.xlarge}
training:
  - {name: fast, instance_type: g5.xlarge, count: 1}
share: efs
"""
GROUP = "AWS::AutoScaling::AutoScalingGroup"


@pytest.fixture(scope="module")
def person(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Whose account is prepared for the CDK; this process's own clients talk to it too."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "repository").mkdir()
    made = Person(aws, folder / "repository")
    made.writes("whole", TOPOLOGY)
    cdk.prepare(account=ACCOUNT, region=REGION, environment=aws.environment, log=folder / "cdk.log")
    return made


@pytest.fixture(autouse=True)
def nothing_is_left(person: Person) -> Iterator[None]:
    before = inventory()
    yield
    assert left_over(before, inventory()) == {}


def deploys(person: Person, status: int = 0) -> str:
    return person.types("deploy", "whole", "--owner", "ada", "--yes", status=status)[1]


def destroys(person: Person) -> str:
    return person.types("destroy", "whole", "--yes")[0]


@pytest.mark.slow
def test_a_create_that_fails_midway_is_named_and_taken_back(person: Person) -> None:
    before = inventory()
    with person.aws.faults.during(CreateFails(resource_type=GROUP, reason="No more groups.")):
        told = deploys(person, status=1)
    assert f"({GROUP}): No more groups (the CDK's log: " in told
    assert "What was created has been deleted" in told
    assert left_over(before, inventory()) == {}


@pytest.mark.soak
def test_a_create_that_may_not_be_taken_back_is_ended_by_destroy(person: Person) -> None:
    refused = Denied(service="cloudformation", operation="DeleteStack")
    with person.aws.faults.during(CreateFails(resource_type=GROUP), refused):
        told = deploys(person, status=1)
    assert "What was created still exists (CREATE_FAILED); delete it by: shoal destroy whole" in told
    assert "not authorized to perform: cloudformation:DeleteStack" in told
    assert "nothing that costs money is left" in destroys(person)


@pytest.mark.soak
def test_a_throttled_api_is_asked_again_and_otherwise_said(person: Person) -> None:
    often = [
        Throttled(service=service, times=3)
        for service in ("autoscaling", "cloudformation", "ec2", "elasticmapreduce", "iam", "s3", "ssm")
    ]
    with person.aws.faults.during(*often):
        deploys(person)
    with person.aws.faults.during(Throttled(service="elasticmapreduce")):
        told = person.types("status", "whole", status=1)[1]
    assert "AWS limits the number of requests at the moment" in told
    with person.aws.faults.during(*often):
        assert "nothing that costs money is left" in destroys(person)


@pytest.mark.soak
def test_what_comes_late_or_meanwhile_is_waited_for_and_no_stale_list_is_believed(person: Person) -> None:
    deploys(person)
    stale = [
        StaleAnswer(service=service, operation=operation, seconds=15)
        for service, operation in (("tagging", "GetResources"), ("iam", "ListRoles"), ("ec2", "DescribeSubnets"))
    ]
    late = (LateUpload(times=5), RevokedMeanwhile(times=None), LateInterfaces(seconds=15))
    with person.aws.faults.during(*late, *stale):
        assert "nothing that costs money is left" in destroys(person)
