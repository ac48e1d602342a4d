"""Stacks in every state are deleted, with their leftovers."""

import json
import secrets
from unittest.mock import Mock

import boto3
import pytest
from shoal_local_aws.aws import ACCOUNT
from shoal_local_aws.faults.kinds import DeleteFails, Denied, GuardDutyAgent
from tests.local_aws.accounts import session_with

from common import names
from common.errors import ShoalError
from common.progress import reporting
from infra import policies, topology
from shoal.aws.account import Account
from shoal.deployments.removal import teardown
from shoal.deployments.removal.inventory import inventory, left_over
from shoal.deployments.removal.sweep import DELETED
from tests import slow
from tests.shoal.cli.command import shoal_here
from tests.shoal.deployments.removal.plants import delete_stack
from tests.waiting import until

RUN = "keeping.20260102T030405-0a1b"
VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}
GROUP = {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "x", "VpcId": {"Ref": "Vpc"}}}
RESOURCES = {
    "Vpc": VPC,
    "Group": GROUP,
    "Bucket": {"Type": "AWS::S3::Bucket"},
    "Files": {"Type": "AWS::EFS::FileSystem"},
}
BROKEN = {
    "Type": "AWS::EC2::FlowLog",
    "Properties": {"Nonsense": "x", "ResourceId": {"Ref": "Vpc"}},
    "DependsOn": "Bucket",
}


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left(account):
    before = inventory()
    yield
    assert left_over(before, inventory()) == {}


class Made:
    """Create a stack of these resources with a deployment's tags."""

    def __init__(self, deployment, resources=RESOURCES, **more):
        self.deployment, self.name = deployment, topology.stack_name(deployment)
        self.cloudformation = boto3.client("cloudformation")
        self.cloudformation.create_stack(
            StackName=self.name,
            TemplateBody=json.dumps({"Resources": resources}),
            Tags=[{"Key": names.TAG_DEPLOYMENT, "Value": deployment}],
            **more,
        )

    def settled(self):
        until(lambda: not self.status().endswith("_IN_PROGRESS"))
        return self.status()

    def status(self):
        return str(self.cloudformation.describe_stacks(StackName=self.name)["Stacks"][0]["StackStatus"])

    def physical(self, logical):
        found = self.cloudformation.describe_stack_resource(StackName=self.name, LogicalResourceId=logical)
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def fill(self):
        boto3.client("s3").put_object(Bucket=self.physical("Bucket"), Key="key", Body=b"x")


def destroy(deployment, session=None):
    printed = []
    with reporting(Mock(note=printed.append)):
        return teardown.destroy(deployment, Account(session), stuck_seconds=20), printed


def make_holes(made):
    boto3.client("efs").delete_file_system(FileSystemId=made.physical("Files"))
    boto3.client("s3").delete_bucket(Bucket=made.physical("Bucket"))


def delete_function(made):
    boto3.client("lambda").delete_function(FunctionName=made.physical("Function"))


@pytest.mark.parametrize(
    ("resources", "more", "state", "then"),
    [
        ({"Broken": BROKEN}, {"OnFailure": "DO_NOTHING"}, "CREATE_FAILED", None),
        ({"Broken": BROKEN}, {"OnFailure": "ROLLBACK"}, "ROLLBACK_COMPLETE", None),
        ({}, {}, "CREATE_COMPLETE", Made.fill),
        ({}, {}, "CREATE_COMPLETE", make_holes),
        (slow.resources(0), {"Capabilities": ["CAPABILITY_IAM"]}, "CREATE_COMPLETE", delete_function),
        (slow.resources(3), {"Capabilities": ["CAPABILITY_IAM"]}, "CREATE_IN_PROGRESS", None),
    ],
    ids=["half made", "taken back", "with a filled bucket", "with holes", "without its function", "being made"],
)
def test_a_stack_in_any_state_is_deleted(resources, more, state, then):
    made = Made(f"stack-{secrets.token_hex(3)}", {**RESOURCES, **resources}, **more)
    assert (made.status() if state == "CREATE_IN_PROGRESS" else made.settled()) == state
    if then:
        then(made)
    done, _ = destroy(made.deployment)
    assert (done.stack, done.costs) == ("deleted", False)


def test_a_change_set_that_was_never_executed_is_deleted():
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_change_set(
        StackName=topology.stack_name("reviewed"),
        ChangeSetName="first",
        ChangeSetType="CREATE",
        TemplateBody=json.dumps({"Resources": RESOURCES}),
    )
    assert destroy("reviewed")[0].stack == "deleted"


def test_a_terminal_is_asked_for_confirmation():
    made = Made("asked", {"Vpc": VPC})
    made.settled()
    for answer, status in ((b"\n", 1), (b"y\n", 0)):
        assert made.status() == "CREATE_COMPLETE"
        done = shoal_here("destroy", "asked", stdin=answer, terminal=True)
        assert (done.returncode, "Destroy it? [y/N]" in done.stderr) == (status, True)


def with_a_run(deployment):
    """Data bucket of a deployment, with a run that was not fetched."""
    kept = {
        "Type": "AWS::S3::Bucket",
        "DeletionPolicy": "Retain",
        "Properties": {"Tags": [{"Key": names.TAG_KEEP, "Value": names.KEEP_UNFETCHED}]},
    }
    made = Made(deployment, {"Bucket": kept})
    made.settled()
    bucket = made.physical("Bucket")
    boto3.client("s3").put_object(Bucket=bucket, Key=f"runs/{RUN}/model/config.json", Body=b"weights")
    return bucket


def buckets():
    return {each["Name"] for each in boto3.client("s3").list_buckets()["Buckets"]}


def test_unfetched_runs_are_deleted_only_with_an_option_or_confirmation():
    bucket = with_a_run("given-up")
    done = shoal_here("destroy", "given-up", "--yes", "--delete-runs")
    assert done.returncode == 0
    assert f"runs that would be lost: {RUN} (s3://{bucket}/runs/)" in done.stderr
    assert bucket not in buckets()


def test_unfetched_runs_stay_and_their_price_is_shown_until_they_are_fetched(tmp_path, aws, messages):
    def shoal(verb, *options, status=0):
        done = shoal_here(verb, "forgotten", *options)
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout) if "--json" in options else done.stdout + done.stderr

    bucket = with_a_run("forgotten")
    said = shoal("destroy", "--yes", "--json")
    assert (said["destroyed"], said["stack"], said["unfetched"]) == (True, "deleted", [RUN])
    (kept,) = said["kept"]
    assert (kept["bucket"], kept["objects"], kept["bytes"]) == (bucket, 1, 7)
    assert 0 < kept["monthly"] < 0.01
    assert shoal("costs", "--json")["kept"] == [kept]
    priced = (
        f"s3://{bucket}, 1 object, 7 bytes, less than $0.01 per month (these runs were not fetched completely: {RUN};"
    )
    assert priced in shoal("status")
    with aws.faults.during(Denied(service="s3", operation="ListObjectVersions")):
        (unseen,) = shoal("status", "--json")["kept"]
        assert (unseen["bucket"], unseen["objects"], unseen["bytes"], unseen["monthly"]) == (bucket, None, None, None)
        assert f"s3://{bucket}, of unknown size and price (" in shoal("status")
    with aws.faults.during(Denied(service="s3", operation="ListBuckets"), Denied(service="tagging")):
        assert "cannot tell whether a bucket is kept: AWS" in shoal("status", status=1)
    again = shoal_here("destroy", "forgotten", "--yes")
    messages.check(again.stdout)
    assert f"kept: s3://{bucket}, 1 object, 7 bytes, less than $0.01 per month (" in again.stderr
    shoal("fetch", "--output", tmp_path)
    shoal("destroy", "--yes")
    assert (tmp_path / RUN / "model" / "config.json").read_bytes() == b"weights"
    assert bucket not in buckets()


def test_a_resource_that_blocks_a_deletion_is_deleted_and_reported():
    made = Made("blocked")
    made.settled()
    made.fill()
    ec2 = boto3.client("ec2")
    foreign = ec2.create_security_group(GroupName="foreign", Description="x")["GroupId"]
    ec2.authorize_security_group_ingress(
        GroupId=foreign, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": made.physical("Group")}]}]
    )
    made.cloudformation.delete_stack(StackName=made.name)
    assert made.settled() == "DELETE_FAILED"
    done, said = destroy("blocked")
    assert done.stack == "deleted"
    assert any(line.startswith("Bucket (AWS::S3::Bucket) was not deleted: ") for line in said)
    assert any(line.startswith("Group (AWS::EC2::SecurityGroup) was not deleted: ") for line in said)
    ec2.delete_security_group(GroupId=foreign)


def test_what_the_agent_of_guardduty_adds_to_a_network_is_deleted_with_the_permissions_of_a_user(aws):
    subnet = {"Type": "AWS::EC2::Subnet", "Properties": {"CidrBlock": "10.0.0.0/24", "VpcId": {"Ref": "Vpc"}}}
    role = f"arn:aws:iam::{ACCOUNT}:role/execution"
    made = Made("watched", {"Vpc": VPC, "Subnet": subnet}, RoleARN=role)
    made.settled()
    ec2, place = boto3.client("ec2"), made.physical("Subnet")
    with aws.faults.during(GuardDutyAgent(seconds=0.3)):
        (instance,) = ec2.run_instances(ImageId="ami-1", MinCount=1, MaxCount=1, SubnetId=place)["Instances"]
        ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
        done, said = destroy("watched", session_with(policies.document(policies.USER)))
    assert any(line.startswith("Subnet (AWS::EC2::Subnet) was not deleted: ") for line in said)
    assert (done.stack, done.proven) == ("deleted", True), done.things
    kinds = {each.kind for each in done.things}
    assert {"vpc endpoint", "security group"} <= kinds


def test_a_resource_that_failed_to_be_deleted_once_is_deleted_with_its_stack(aws):
    made = Made("once", {"Files": RESOURCES["Files"]})
    made.settled()
    denied = Denied(service="elasticfilesystem", operation="DescribeFileSystems")
    with aws.faults.during(DeleteFails(logical_id="Files", times=1), denied):  # the sweep does not find it
        done, _ = destroy("once")
    assert done.stack == "deleted"
    assert boto3.client("efs").describe_file_systems()["FileSystems"] == []


def test_resources_that_a_deletion_by_hand_left_are_found():
    made = Made("by-hand")
    made.settled()
    made.fill()
    bucket = made.physical("Bucket")
    made.cloudformation.delete_stack(StackName=made.name)
    assert made.settled() == "DELETE_FAILED"
    delete_stack(made.name, RetainResources=["Bucket"])
    done, _ = destroy("by-hand")
    assert done.stack == "was not there"
    assert [(each.kind, each.identifier, each.outcome) for each in done.things] == [("s3 bucket", bucket, DELETED)]


def test_a_protected_stack_stays_and_the_message_names_the_command_to_unprotect_it(messages):
    made = Made("protected", {"Vpc": VPC}, EnableTerminationProtection=True)
    made.settled()
    with messages.raises(ShoalError):
        destroy("protected")
    made.cloudformation.update_termination_protection(StackName=made.name, EnableTerminationProtection=False)
    assert destroy("protected")[0].stack == "deleted"
