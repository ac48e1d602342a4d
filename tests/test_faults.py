"""What goes wrong in AWS while a deployment lives: it ends with a sentence, and nothing is left."""

import shutil
from collections.abc import Callable, Iterator

import boto3
import pytest

from bootstrap.aws import cdk
from bootstrap.removal.inventory import inventory, left_over
from embedded.aws import ACCOUNT, REGION, EmbeddedAws
from embedded.faults.kinds import CreateFails, DeleteFails, Denied, SilentBoot, Throttled
from tests.person import ROOT, Person, give_first_boot

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


@pytest.fixture
def first_boot(person: Person) -> Iterator[Callable[[str], None]]:
    """Gives the EMR nodes of this person's deployments another first boot."""
    room = person.repository / "bootstrap"
    room.unlink()
    yield lambda script: give_first_boot(person.repository, script)
    shutil.rmtree(room)
    room.symlink_to(ROOT / "bootstrap")


@pytest.mark.soak
def test_a_first_boot_that_fails_is_explained_before_all_is_taken_back(
    person: Person, first_boot: Callable[[str], None]
) -> None:
    before = inventory()
    first_boot("for number in $(seq 30); do echo line $number >&2; done; echo no such wheel: numba >&2; exit 3")
    told = deploys(person, status=1)
    explained, _, failed = told.partition("the deployment 'whole' failed at PreprocessingCluster")
    assert "the first boot of an EMR node failed; the end of its log (s3://" in explained
    assert "line 30\nno such wheel: numba\n" in explained
    assert "line 11\n" not in explained
    assert "bootstrap action 1 returned a non-zero return code (3)" in failed
    assert "What was created has been deleted; correct the cause and deploy again" in failed
    assert left_over(before, inventory()) == {}


@pytest.mark.slow
def test_a_create_that_fails_midway_is_named_and_taken_back(person: Person) -> None:
    before = inventory()
    with person.aws.faults.during(CreateFails(resource_type=GROUP, reason="No more groups.")):
        told = deploys(person, status=1)
    assert f"({GROUP}): No more groups (the CDK's log: " in told
    assert "What was created has been deleted" in told
    assert left_over(before, inventory()) == {}


@pytest.mark.soak
def test_a_create_of_which_not_everything_goes_at_once_is_taken_back_all_the_same(person: Person) -> None:
    faults = (CreateFails(resource_type=GROUP), DeleteFails(resource_type="AWS::EFS::FileSystem", times=1))
    with person.aws.faults.during(*faults):
        told = deploys(person, status=1)
    assert "What was created has been deleted" in told


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
def test_what_was_deleted_by_hand_keeps_nothing_else(person: Person) -> None:
    deploys(person)
    ids = {name.rstrip("0123456789ABCDEF"): each for name, each in person.resources("whole").items()}
    groups = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    boto3.client("autoscaling").delete_auto_scaling_group(
        AutoScalingGroupName=groups[0]["AutoScalingGroupName"], ForceDelete=True
    )
    efs = boto3.client("efs")
    share = person.stack_outputs("whole")["ShareId"]
    for target in efs.describe_mount_targets(FileSystemId=share)["MountTargets"]:
        efs.delete_mount_target(MountTargetId=target["MountTargetId"])
    efs.delete_file_system(FileSystemId=share)
    boto3.client("lambda").delete_function(FunctionName=ids["GuardFunction"])
    said = person.types("status", "whole")[0]
    assert "no: it has no guard; end it by: shoal destroy whole" in said
    assert "nothing that costs money is left" in destroys(person)


@pytest.mark.soak
def test_a_node_that_never_reports_ends_the_training_and_is_not_paid_for(person: Person) -> None:
    deploys(person)
    bucket = person.stack_outputs("whole")["DataBucket"]
    key = f"datasets/{0:032x}/dataset.h5"
    boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=b"not read by anyone")
    with person.aws.faults.during(SilentBoot()):
        told = person.types(
            "train",
            *("--deployment", "whole", "--data", f"s3://{bucket}/{key}"),
            *("--output", str(person.repository / "model")),
            status=1,
            beforehand="from bootstrap.nodes import scale_up; scale_up.READY_SECONDS = 3",
        )[1]
    assert "0 of 1 are ready" in told
    groups = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    assert [(group["DesiredCapacity"], group["Instances"]) for group in groups] == [(0, [])]
    assert "nothing that costs money is left" in destroys(person)
