"""Leftovers of other programs' stacks are found, priced and deleted, but nothing of a neighbour, by `left_of`, by
`python -m shoal_guard` and by the example of the documents."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
import yaml
from shoal_guard.__main__ import main
from shoal_guard.errors import NameOnlyError, OwnershipUnknownError, SweepError
from shoal_guard.left import left_of
from shoal_guard.sweep.kinds import KINDS, is_being_deleted
from shoal_guard.sweep.monthly_prices import price_of
from shoal_guard.sweep.stack_owner import StackOwner
from shoal_guard.sweep.sweeping import DELETED, FOUND, KEPT, LEFT, UNVERIFIED, delete_found, find_owned
from shoal_local_aws.faults.kinds import Denied

from infra import topology
from tests.bootstrap.removal.plants import make_stack
from tests.shoal.outside import EXAMPLES

TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
STACK = yaml.safe_load(Path(__file__).with_name("left_stack.yaml").read_text())
COMES_WITH_A_VPC = ("security group", "network acl", "route table")
EXPECTED = {
    *("log group", "s3 bucket", "elastic ip", "rds instance", "rds snapshot", "volume", "snapshot", "dynamodb table"),
    *("vpc", "subnet", "network interface", "secret", "ecr repository", "cloudwatch alarm"),
}
Keys = set[tuple[str, str]]


@pytest.fixture(scope="module")
def left(account):
    """Leftovers of the stack `web`. A neighbour has a name with the same prefix."""
    make_stack("web-2", STACK)
    beside = exist(account)
    make_stack("web", STACK)
    made = exist(account) - beside
    (bucket,) = (identifier for kind, identifier in made if kind == "s3 bucket")
    for body in (b"one", b"two"):
        boto3.client("s3").put_object(Bucket=bucket, Key="photo", Body=body)
    (archive,) = (identifier for kind, identifier in made if kind == "volume" and size(identifier) == 50)
    boto3.client("ec2").create_snapshot(VolumeId=archive)  # somebody's backup, without a tag
    delete("web")
    return {each for each in exist(account) - beside if each[0] not in COMES_WITH_A_VPC}


def delete(name):
    cloudformation = boto3.client("cloudformation")
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


def size(volume):
    return boto3.client("ec2").describe_volumes(VolumeIds=[volume])["Volumes"][0]["Size"]


def exist(account):
    """Return everything that is listed, except stacks."""
    kinds = {name: kind for name, kind in KINDS.items() if name != "cloudformation stack"}
    return {(name, identifier) for name, kind in kinds.items() for identifier, _ in kind.records(account)}


def test_a_stacks_leftovers_are_found_and_nothing_of_its_neighbour(account, left):
    assert {kind for kind, _ in left} >= EXPECTED
    assert {thing.key for thing in find_owned(StackOwner(account, stack="web"))} == left


def test_a_prefix_finds_both_stacks_and_a_tag_its_resources(account, left):
    web = {thing.key for thing in find_owned(StackOwner(account, prefix="web"))}
    named = {"log group", "s3 bucket", "rds instance", "dynamodb table", "secret", "ecr repository"}
    assert {each for each in left if each[0] in named} < web
    assert {("cloudformation stack", "web-2")} < web
    by_tag = {thing.key for thing in find_owned(StackOwner(account, tag="aws:cloudformation:stack-name=web"))}
    assert by_tag <= left
    assert ("log group", next(name for kind, name in left if kind == "log group")) in by_tag
    assert {thing.key for thing in find_owned(StackOwner(account, tag="aws:cloudformation:stack-name"))} > by_tag
    assert find_owned(StackOwner(account, tag="aws:cloudformation:stack-name=we")) == []


def test_resources_with_known_prices_are_priced(account, left):
    prices = {thing.kind: price_of(account, thing) for thing in find_owned(StackOwner(account, stack="web"))}
    priced = {kind: (price.dollars, price.bound) for kind, price in prices.items()}
    assert priced["elastic ip"] == (pytest.approx(3.65), "")
    assert priced["volume"] == (pytest.approx(0.80), "")
    assert priced["snapshot"] == (pytest.approx(2.50), "at most")
    assert priced["rds instance"] == (pytest.approx(2.30), "at least")
    assert priced["secret"] == (pytest.approx(0.40), "")
    assert priced["cloudwatch alarm"] == (pytest.approx(0.10), "")
    assert priced["vpc"] == (0.0, "")
    bucket, _bound = priced["s3 bucket"]
    assert bucket == pytest.approx(0.023 * 6 / 2**30)  # both versions of the photo


@pytest.mark.parametrize(
    "claim",
    [{}, {"stack": "a", "prefix": "a"}, {"stack": "a b"}, {"tag": "=x"}, pytest.param({"tag": "k" * 129}, id="long")],
    ids=str,
)
def test_an_invalid_selection_is_refused(account, claim, messages):
    with messages.raises(ValueError):
        StackOwner(account, **claim)


@pytest.mark.parametrize(
    ("kind", "name", "called"),
    [
        ("log group", "web-Log-AB12CD34EF56", True),
        ("s3 bucket", "web-uploads-3kx81xyz9abc", True),
        ("s3 bucket", "web-assets-123456789012", True),  # uncertain: its name could also come from CloudFormation
        ("rds snapshot", "web-snapshot-orders-3kx81xyz9abc", True),
        ("s3 bucket", "web-snapshot-orders-3kx81xyz9abc", False),
        ("log group", "web-2-Log-AB12CD34EF56", False),
        ("log group", "web-api-prod", False),
        ("log group", "webs-Log-AB12CD34EF56", False),
        ("log group", "my-web-Log-AB12CD34EF56", False),
        ("log group", "/aws/lambda/web-prod-hello", False),
        ("log group", "/ecs/web-Log-AB12CD34EF56", False),
        ("instance", "i-0a1b2c3d4e5f60718", False),
    ],
)
def test_a_resource_that_only_has_a_similar_name_is_not_certain(account, kind, name, called):
    claim = StackOwner(account, stack="web")
    if called:
        with pytest.raises(NameOnlyError):
            claim.owns_by_name(KINDS[kind], name, {})
    else:
        assert not claim.owns_by_name(KINDS[kind], name, {})


@pytest.mark.parametrize("prefix", ["app", "net", "arn", "aws", "sns", "us", "i", "vol", "admin", "j"])
def test_a_prefix_applies_only_to_a_resources_own_name(account, prefix):
    claim, place = StackOwner(account, prefix=prefix), "us-east-1:000000000000"
    for kind, identifier, record in (
        ("load balancer", f"arn:aws:elasticloadbalancing:{place}:loadbalancer/app/x/1", {"LoadBalancerName": "x"}),
        ("sns topic", f"arn:aws:sns:{place}:x", {}),
        ("instance", "i-0a1b2c3d4e5f60718", {"KeyName": f"{prefix}-key"}),
        ("volume", "vol-0a1b2c3d4e5f60718", {}),
        ("rds instance", "x", {"MasterUsername": "admin"}),
        ("cloudwatch alarm", "x", {"MetricName": f"{prefix}x"}),
        ("emr cluster", "j-1ABCDEFGHIJKL", {"Name": "x"}),
    ):
        assert not claim.owns_by_name(KINDS[kind], identifier, record), kind
    named = {"LoadBalancerName": f"{prefix}-x"}
    assert claim.owns_by_name(KINDS["load balancer"], "arn:aws:x:y:z:loadbalancer/app/x/1", named)
    assert claim.owns_by_name(KINDS["log group"], f"/aws/lambda/{prefix}-x", {})


def test_a_database_that_is_being_deleted_is_not_deleted_again():
    assert is_being_deleted({"DBInstanceStatus": "deleting"})


def test_a_neighbours_resources_stay_although_they_are_related(account, aws):
    """The neighbour's resources are in a VPC that the stack left, have similar names, were imported from it, or are in
    another region."""
    lambdas = "AWS::Lambda::Function"
    left = {"Vpc": STACK["Vpc"], "Uploads": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"}}
    made = make_stack("near", left)
    ec2, s3 = boto3.client("ec2"), boto3.client("s3")
    delete("near")
    group = ec2.create_security_group(GroupName="app", Description="x", VpcId=made["Vpc"])["GroupId"]
    other = [{"Key": "aws:cloudformation:stack-name", "Value": "far"}]
    s3.put_bucket_tagging(Bucket=made["Uploads"], Tagging={"TagSet": other})
    s3.create_bucket(Bucket="near-assets-123456789012")
    boto3.client("logs").create_log_group(logGroupName="/ecs/prod")
    boto3.client("iam").create_role(RoleName="near-AppRole-1ABCDEFG2HIJ", AssumeRolePolicyDocument=TRUST)
    make_stack("near", {"Topic": {"Type": "AWS::SNS::Topic"}}, region="eu-west-1")
    claim = StackOwner(account, stack="near")
    outcomes = {thing.key: thing.outcome for thing in find_owned(claim)}
    assert outcomes.pop(("vpc", made["Vpc"])) == FOUND
    assert outcomes.pop(("s3 bucket", "near-assets-123456789012")) == UNVERIFIED
    assert outcomes.pop(("iam role", "near-AppRole-1ABCDEFG2HIJ")) == UNVERIFIED
    assert outcomes == {}
    done = delete_found(claim, find_owned(StackOwner(account, stack="near")), stuck_seconds=1)
    assert [thing.kind for thing in done if thing.outcome == LEFT] == ["vpc"]
    assert ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert {"near-assets-123456789012", made["Uploads"]} <= {each["Name"] for each in s3.list_buckets()["Buckets"]}
    claim = StackOwner(account, stack="near")
    claim.__dict__["_recorded"] = {("AWS::ApiGateway::Stage", "prod"): "CREATE_COMPLETE", (lambdas, "f"): "x"}
    assert not claim.owns_by_name(KINDS["log group"], "/ecs/prod", {})
    assert claim.owns_by_name(KINDS["log group"], "/aws/lambda/f", {})


@pytest.mark.parametrize("tagged", [True, False])
def test_resources_of_an_existing_stack_with_another_name_are_listed_and_stay(account, tagged):
    """The owner is known only from its tag, or only from the stack's list."""
    prefix, s3 = f"shop{tagged}".lower(), boto3.client("s3")
    theirs, owner = f"{prefix}-live", f"Production{tagged}"
    resources = {} if tagged else {"Data": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": theirs}}}
    make_stack(owner, {"Topic": {"Type": "AWS::SNS::Topic"}, **resources})
    for bucket in (theirs, f"{prefix}-old") if tagged else (f"{prefix}-old",):
        s3.create_bucket(Bucket=bucket)
    if tagged:
        tags = [{"Key": "aws:cloudformation:stack-name", "Value": owner}]
        s3.put_bucket_tagging(Bucket=theirs, Tagging={"TagSet": tags})
    else:
        s3.delete_bucket_tagging(Bucket=theirs)
    things = {each.identifier: each for each in left_of(prefix=prefix, delete=True)}
    assert {name: each.outcome for name, each in things.items()} == {theirs: KEPT, f"{prefix}-old": DELETED}
    assert f"stack {owner} owns it" in things[theirs].reason
    s3.head_bucket(Bucket=theirs)
    delete(owner)


def test_without_the_lists_of_other_stacks_untagged_resources_are_not_certain(account, aws, messages):
    make_stack("their-own", {"Topic": {"Type": "AWS::SNS::Topic"}})
    boto3.client("s3").create_bucket(Bucket="unread-data")
    with aws.faults.during(Denied(service="cloudformation", operation="ListStackResources")):
        things = {thing.identifier: thing for thing in find_owned(StackOwner(account, prefix="unread-data"))}
    assert things["unread-data"].outcome == UNVERIFIED
    messages.check(things["unread-data"].why)
    boto3.client("s3").delete_bucket(Bucket="unread-data")
    delete("their-own")


@pytest.mark.parametrize("status", ["CREATE_FAILED", "IMPORT_FAILED", "IMPORT_ROLLBACK_COMPLETE"])
def test_a_resource_that_a_stack_failed_to_create_or_import_is_not_certain(account, status, messages):
    claim = StackOwner(account, stack="tried")
    claim.__dict__["_recorded"] = {("AWS::S3::Bucket", "somebodys"): status, ("AWS::Lambda::Function", "f"): status}
    with messages.raises(NameOnlyError):
        claim.owns_by_name(KINDS["s3 bucket"], "somebodys", {})
    assert claim.stack_resources == set()
    assert not claim.owns_by_name(KINDS["log group"], "/aws/lambda/f", {})


def answering(**answers):
    """Return an account in which each operation lists the given items."""
    return SimpleNamespace(items=lambda _service, operation, _key, **_parameters: answers.get(operation, []))


BUCKET = {"ResourceType": "AWS::S3::Bucket", "PhysicalResourceId": "web-data"}


@pytest.mark.parametrize(
    ("newest", "owned"), [("DELETE_COMPLETE", False), ("DELETE_SKIPPED", True), ("CREATE_FAILED", False)]
)
def test_the_newest_event_of_a_resource_decides_whether_a_deleted_stack_kept_it(newest, owned):
    events = [{**BUCKET, "ResourceStatus": status} for status in (newest, "CREATE_COMPLETE", "CREATE_IN_PROGRESS")]
    stacks = [{"StackName": "web", "StackId": "web/1", "StackStatus": "DELETE_COMPLETE"}]
    claim = StackOwner(answering(list_stacks=stacks, describe_stack_events=events), stack="web")
    assert claim.stack_resources == ({("AWS::S3::Bucket", "web-data")} if owned else set())


@pytest.mark.parametrize(
    ("status", "owner"),
    [("CREATE_COMPLETE", ("shop", True)), ("DELETE_COMPLETE", ("", False)), ("CREATE_FAILED", ("", False))],
)
def test_another_stack_owns_only_resources_that_it_made_and_still_has(status, owner):
    stacks = [{"StackName": "shop", "StackId": "shop/1", "StackStatus": "CREATE_COMPLETE"}]
    account = answering(list_stacks=stacks, list_stack_resources=[{**BUCKET, "ResourceStatus": status}])
    assert StackOwner(account, prefix="web").stack_of(KINDS["s3 bucket"], "web-data", {}) == owner


def test_without_the_tagging_service_imports_by_another_stack_are_not_certain(account, aws, messages):
    make_stack("kept", {"Uploads": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"}})
    with aws.faults.during(Denied(service="tagging", operation="GetResources")):
        claim = StackOwner(account, stack="kept")
        (bucket,) = (identifier for kind, identifier in claim.stack_resources if kind == "AWS::S3::Bucket")
        with messages.raises(OwnershipUnknownError):
            claim.owns_by_name(KINDS["s3 bucket"], bucket, {})
    assert StackOwner(account, stack="kept").owns_by_name(KINDS["s3 bucket"], bucket, {})


def test_nothing_is_deleted_while_a_stack_may_exist(account, aws, messages):
    make_stack("there", {"Topic": {"Type": "AWS::SNS::Topic"}})
    with messages.raises(SweepError):
        StackOwner(account, tag="aws:cloudformation:stack-name=there").check_deletable()
    for operation, claim in (
        (Denied(service="cloudformation", operation="ListStacks"), {"stack": "there"}),
        (Denied(service="cloudformation", operation="ListStacks"), {"prefix": "there"}),
        (Denied(service="tagging", operation="GetResources"), {"tag": "x=y"}),
    ):
        with aws.faults.during(operation), messages.raises(SweepError):
            StackOwner(account, **claim).check_deletable()


def test_a_service_that_does_not_answer_is_listed_as_not_certain(aws, account):
    with aws.faults.during(Denied(service="rds", operation="DescribeDBInstances")):
        things = [(each.kind, each.identifier, each.is_certain) for each in left_of("never-there")]
    assert things == [("rds instance", "(all)", False)]


def test_resources_of_an_existing_stack_are_not_deleted(account, left, messages):
    beside = exist(account)
    with messages.raises(SweepError):
        left_of("web-2", delete=True)
    assert exist(account) == beside


def test_leftovers_are_listed_and_deleted(account, left):
    beside = exist(account)
    assert {each.identifier for each in left_of("web")} >= {identifier for _kind, identifier in left}
    assert exist(account) == beside
    assert not any(each.costs for each in left_of("web", delete=True))
    assert {each for each in beside - exist(account) if each[0] not in COMES_WITH_A_VPC} == left
    assert left_of("web") == []


def test_the_leftovers_of_a_small_stack_are_listed_by_programs(account, monkeypatch, capsys):
    secret = {"Type": "AWS::SecretsManager::Secret", "Properties": {"SecretString": "x"}, "DeletionPolicy": "Retain"}
    make_stack("Leaving", {"Kept": STACK["Log"], "Secret": secret})
    delete("Leaving")
    things = left_of("Leaving", session=boto3.Session())
    assert {each.kind: each.dollars_a_month for each in things} == {"secret": 0.40, "log group": 0.0}
    assert all(each.costs and each.is_certain for each in things)
    monkeypatch.setattr("sys.argv", ["what_is_left.py", "Leav", "None"])
    runpy.run_path(str(EXAMPLES / "what_is_left.py"), run_name="__main__")
    *lines, last = capsys.readouterr().out.splitlines()
    assert (len(lines), last) == (2, "0.40 dollars a month")
    assert main(["Leaving"]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert sorted(line.split("\t")[0] for line in lines) == ["log group", "secret"]
    assert last.startswith("resources left: 2; ")
    assert last.endswith(": $0.40 per month")
    assert {each.outcome for each in left_of("Leaving", delete=True)} == {"deleted"}
    assert main(["Leaving"]) == 0


@pytest.mark.parametrize("keep", ["true", "unfetched"])
def test_a_bucket_with_the_tag_that_keeps_it_is_not_emptied(account, aws, keep):
    s3, bucket = boto3.client("s3"), f"precious-{keep}"
    s3.create_bucket(Bucket=bucket)
    tags = [{"Key": topology.TAG_KEEP, "Value": keep}, {"Key": "team", "Value": keep}]
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
    s3.put_object(Bucket=bucket, Key="data", Body=b"1")
    (kept,) = left_of(tag=f"team={keep}", delete=True)
    assert (kept.outcome, kept.reason.split("; ")[0]) == ("kept", f"its tag shoal:keep={keep} keeps it")
    with aws.faults.during(Denied(service="s3", operation="GetBucketTagging")):
        unknown = next(each for each in left_of(prefix=bucket, delete=True) if each.kind == "s3 bucket")
    assert (unknown.is_certain, unknown.outcome) == (False, "unknown")
    assert s3.get_object(Bucket=bucket, Key="data")["Body"].read() == b"1"


@pytest.mark.parametrize(("stack", "expiry"), [("5th", None), ("WebShop", "2020-01-01T00:00:00Z")])
def test_a_wrong_name_and_expired_credentials_are_error_messages(account, monkeypatch, capsys, stack, expiry, messages):
    if expiry:
        monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", expiry)
    with pytest.raises(SystemExit, match="2"):
        main([stack])
    messages.check(capsys.readouterr().err.splitlines()[0])
