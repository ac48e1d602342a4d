"""Resources that AWS does not report never count as deleted: a refusal is reported, and all listed resources are
deleted."""

import re
from pathlib import Path

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import Denied, Throttled

from infra import topology
from shoal.aws import boot_report
from shoal.deployments.removal.kinds import KINDS
from shoal.deployments.removal.ownership import Ownership
from shoal.deployments.removal.sweep import DELETED, UNVERIFIED, find_resources, sweep
from tests.shoal.cli.command import shoal_here
from tests.shoal.deployments.removal.plants import PLANTS, TOPIC, Planter, make_bucket, make_stack

SIGNED = {"emr": "elasticmapreduce", "efs": "elasticfilesystem", "resourcegroupstaggingapi": "tagging"}
"""Names of services in IAM that differ from botocore's."""
OPERATIONS_BY_SERVICE = yaml.safe_load(Path(__file__).with_name("asked.yaml").read_text())
OPERATIONS = [
    f"{service} {operation}" for service, operations in OPERATIONS_BY_SERVICE.items() for operation in operations
]
_OF_THINGS = re.compile(r".*Tag|.*(DescribeCluster|Regions|Versions|StackResources|Targets|GetResources)$")
AT_ONCE = [OPERATIONS[first::8] for first in range(8)]
"""Groups of operations, with a few of each service."""
LISTS = [operation for operation in OPERATIONS if not _OF_THINGS.match(operation)]
"""Operations that are called in any case, independent of earlier results."""
TAGGING = Denied(service="tagging")


Keys = set[tuple[str, str]]


@pytest.fixture(scope="module")
def planted(account):
    """All resources of the deployment `planted`: one of each kind, a stack, and a bucket with kept data."""
    planter, s3 = Planter("planted"), make_bucket("shoal-kept", "planted", "true")
    for plant in PLANTS.values():
        plant(planter)
    s3.put_object(Bucket="shoal-kept", Key="runs/one/model.pt", Body=b"x")
    boto3.client("ssm").put_parameter(Name="/of-shoal", Value="x", Type="String", Tags=planter.tags)
    make_stack(planter.stack, TOPIC)
    things = find_resources("planted", account)
    assert [thing for thing in things if thing.outcome == UNVERIFIED] == []
    return keys(things)


@pytest.fixture(scope="module")
def found_by_lists(planted, account, aws):
    """Resources that are found without the tagging service."""
    with aws.faults.during(TAGGING):
        return keys(find_resources("planted", account))


def keys(found):
    return {thing.key for thing in found if not thing.identifier.startswith("(")}


def denied(operation):
    service, _, operation = operation.partition(" ")
    return Denied(service=SIGNED.get(service, service).replace("cloudwatch", "monitoring"), operation=operation)


def test_the_table_lists_all_operations_of_a_search(planted, account):
    called = set()

    def record(model, **_):
        called.add(f"{model.service_model.service_name} {model.name}")

    for client in account._clients.values():  # the fixture `planted` has made a search with all of them
        client.meta.events.register("before-call", record)
    find_resources("planted", account)
    assert called - {"cloudformation DescribeStacks"} == set(OPERATIONS)


@pytest.mark.parametrize("operations", AT_ONCE, ids=len)
def test_after_any_denial_each_resource_is_found_or_its_kind_is_unverified(operations, found_by_lists, account, aws):
    with aws.faults.during(*map(denied, operations), TAGGING):
        things = find_resources("planted", account)
    unseen = {thing.kind for thing in things if thing.outcome == UNVERIFIED and thing.identifier == "(all)"}
    assert {(kind, name) for kind, name in found_by_lists - keys(things) if kind not in unseen} == set()


def test_a_denied_list_is_not_an_empty_one(account, aws):
    with aws.faults.during(*map(denied, LISTS)):
        things = find_resources("never-was", account)
    assert {thing.outcome for thing in things} == {UNVERIFIED}
    assert len({thing.kind for thing in things}) >= len(LISTS)


@pytest.mark.parametrize("called", [("destroy", "--dry-run"), ("costs",), ("status",)], ids=lambda called: called[0])
def test_what_aws_does_not_answer_is_an_error_that_names_call_account_and_region(called, account, aws, messages):
    name = f"unread-{called[0]}"
    make_stack(topology.stack_name(name), TOPIC)
    with aws.faults.during(denied("s3 ListBuckets"), denied("ec2 DescribeVpcs")):
        done = shoal_here(called[0], name, *called[1:])
    assert (done.returncode, "ListBuckets" in done.stderr) == (1, True)
    messages.check(done.stderr.strip().splitlines()[-1])


def test_a_bucket_with_unreadable_tags_is_reported_and_the_rest_is_deleted(aws, account):
    make_bucket("shoal-hidden-data", "hidden")
    Planter("hidden").subnet()
    with aws.faults.during(denied("s3 GetBucketTagging"), TAGGING):
        done = shoal_here("destroy", "hidden", "--yes")
    assert done.returncode == 1
    printed = " ".join(done.stdout.split())
    assert "s3 bucket shoal-hidden-data yes unknown its tags are unreadable" in printed
    assert "(the tagging service) unknown" in printed
    assert "more might be left" in printed
    assert "subnet" in printed
    tagged = [{"Name": "tag:shoal:deployment", "Values": ["hidden"]}]
    assert boto3.client("ec2").describe_subnets(Filters=tagged)["Subnets"] == []
    assert shoal_here("destroy", "hidden", "--yes").returncode == 0
    # no stack ever had this resource
    assert "there is no deployment 'hidden'" in shoal_here("destroy", "hidden", "--yes").stderr


def test_a_kept_bucket_without_access_does_not_count_as_missing(account, aws, messages):
    called = ("fetch", "never-was", "--output", "nowhere")
    with aws.faults.during(denied("s3 ListBuckets")):
        messages.check(shoal_here(*called).stderr.rstrip())
    assert "there is no deployment 'never-was'" in shoal_here(*called).stderr


def test_a_bucket_is_deleted_by_its_tag_without_permission_to_list_buckets(account, aws):
    make_bucket("shoal-listless", "listless")
    with aws.faults.during(denied("s3 ListBuckets")):
        done = shoal_here("destroy", "listless", "--yes")
    assert (done.returncode, "it was deleted, but" in done.stdout) == (1, True)
    assert find_resources("listless", account) == []


def test_a_stack_is_deleted_with_hardly_any_permission_to_list(aws, account):
    stack = topology.stack_name("blind")
    made = make_stack(stack, {"Bucket": {"Type": "AWS::S3::Bucket"}, "Topic": {"Type": "AWS::SNS::Topic"}})
    boto3.client("s3").put_object(Bucket=made["Bucket"], Key="x", Body=b"in its way")
    refused = ("s3 ListBuckets", "autoscaling *", "ssm *", "sns *", "elasticmapreduce *", "ec2 *")
    with aws.faults.during(TAGGING, *map(denied, refused)):
        done = shoal_here("destroy", "blind", "--yes")
    assert done.returncode == 1
    assert "'blind': the stack is deleted; more might be left" in " ".join(done.stdout.split())
    with pytest.raises(ClientError, match="does not exist"):
        boto3.client("cloudformation").describe_stacks(StackName=stack)


def test_a_service_that_does_not_answer_is_unverified_and_the_rest_is_deleted(account):
    Planter("cut-off").topic()
    events = account.client("events").meta.events
    events.register("before-call", lambda params, **_: params.update(url="http://127.0.0.1:9"), "nowhere")
    things = {thing.kind: thing for thing in sweep("cut-off", account, stuck_seconds=20)}
    events.unregister("before-call", unique_id="nowhere")
    assert (things["sns topic"].outcome, things["event rule"].outcome) == (DELETED, UNVERIFIED)
    assert "Could not connect" in things["event rule"].why


def test_a_role_may_belong_to_an_unchecked_region(account, aws):
    Planter("roaming").role()
    throttled = Throttled(service="cloudformation", operation="DescribeStacks", times=1)
    for fault in (denied("cloudformation DescribeStacks"), denied("ec2 DescribeRegions"), throttled):
        with aws.faults.during(fault):
            (role,) = sweep("roaming", account, stuck_seconds=0)
        assert (role.kind, role.outcome) == ("iam role", UNVERIFIED)
        assert "another region may have" in role.why
    assert [thing.outcome for thing in sweep("roaming", account)] == [DELETED]


def test_a_role_differs_from_one_of_another_region_by_the_record_of_its_stack(account):
    trust = {"Version": "2012-10-17", "Statement": []}
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}}
    more = {"Tags": Planter("double").tags, "Capabilities": ["CAPABILITY_IAM"]}
    stack = topology.stack_name("double")
    here, _ = (make_stack(stack, {"R": role}, region, **more)["R"] for region in ("us-east-1", "eu-west-1"))
    assert [thing.key for thing in find_resources("double", account)] == [("iam role", here)]


def test_other_resources_are_not_reported(account, aws):
    make_bucket("shoal-mine-abroad", "mine", region="eu-west-1")
    boto3.client("s3").create_bucket(Bucket="shoal-of-somebody")
    assert find_resources("mine", account) == []
    assert boto3.client("s3", region_name="eu-west-1").head_bucket(Bucket="shoal-mine-abroad")
    news = {"TopicArn": "arn:aws:sns:us-east-1:111111111111:shoal-news", "Owner": "000000000000"}
    with aws.faults.during(denied("sns ListTagsForResource")):
        assert not KINDS["sns subscription"].owned(Ownership(account, "mine"), news)


def test_an_unreadable_report_differs_from_a_missing_one(account, aws):
    boto3.client("s3").create_bucket(Bucket="reports")
    assert boot_report.read_report(account, "reports", "i-1") == {}
    assert boot_report.read_report(account, "never-was", "i-1") == {}
    with aws.faults.during(Denied(service="s3", operation="GetObject")):
        report = boot_report.read_report(account, "reports", "i-1")
    assert report["state"] == boot_report.UNREADABLE
    assert "cannot read its report: " in report["log"]
