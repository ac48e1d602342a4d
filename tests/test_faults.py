"""Faults of AWS during a deployment's life end in a message, and leave nothing."""

from collections.abc import Iterator

import pytest
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import (
    ConcurrentRevocation,
    CreateFails,
    Denied,
    LateInterfaces,
    LateUpload,
    StaleAnswer,
    Throttled,
)

from shoal.deployments.removal.inventory import inventory, left_over
from tests.command_user import CommandUser

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
def user(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> CommandUser:
    """Yield a user with an account that is prepared for the CDK. The clients of this process use the same account."""
    made = CommandUser.prepared(aws, tmp_path_factory.mktemp("faults"))
    made.write_topology("whole", TOPOLOGY)
    return made


@pytest.fixture(autouse=True)
def nothing_is_left(user: CommandUser) -> Iterator[None]:
    before = inventory()
    yield
    assert left_over(before, inventory()) == {}


def deploys(user: CommandUser, status: int = 0) -> str:
    return user.run("deploy", "whole", "--owner", "ada", "--yes", status=status)[1]


def destroys(user: CommandUser) -> str:
    return user.run("destroy", "whole", "--yes")[0]


@pytest.mark.slow
def test_a_failed_create_is_reported_and_removed(user: CommandUser) -> None:
    before = inventory()
    with user.aws.faults.during(CreateFails(resource_type=GROUP, reason="No more groups.")):
        stderr = deploys(user, status=1)
    assert f"({GROUP}): No more groups (the CDK's log: " in stderr
    assert "Shoal deleted all created resources" in stderr
    assert left_over(before, inventory()) == {}


@pytest.mark.soak
def test_destroy_removes_a_failed_create_that_could_not_be_removed(user: CommandUser) -> None:
    refused = Denied(service="cloudformation", operation="DeleteStack")
    with user.aws.faults.during(CreateFails(resource_type=GROUP), refused):
        stderr = deploys(user, status=1)
    assert "The created resources still exist (CREATE_FAILED); to delete them: shoal destroy whole" in stderr
    assert "not authorized to perform: cloudformation:DeleteStack" in stderr
    assert "nothing that costs money is left" in destroys(user)


@pytest.mark.soak
def test_throttled_requests_are_retried_or_reported(user: CommandUser) -> None:
    often = [
        Throttled(service=service, times=3)
        for service in ("autoscaling", "cloudformation", "ec2", "elasticmapreduce", "iam", "s3", "ssm")
    ]
    with user.aws.faults.during(*often):
        deploys(user)
    with user.aws.faults.during(Throttled(service="elasticmapreduce")):
        stderr = user.run("status", "whole", status=1)[1]
    assert "AWS is throttling requests" in stderr
    with user.aws.faults.during(*often):
        assert "nothing that costs money is left" in destroys(user)


@pytest.mark.soak
def test_late_resources_are_awaited_and_stale_lists_are_not_trusted(user: CommandUser) -> None:
    deploys(user)
    stale = [
        StaleAnswer(service=service, operation=operation, seconds=15)
        for service, operation in (("tagging", "GetResources"), ("iam", "ListRoles"), ("ec2", "DescribeSubnets"))
    ]
    late = (LateUpload(times=5), ConcurrentRevocation(times=None), LateInterfaces(seconds=15))
    with user.aws.faults.during(*late, *stale):
        assert "nothing that costs money is left" in destroys(user)
