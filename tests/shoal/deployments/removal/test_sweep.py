"""Leftovers of a deployment are found and deleted, kind by kind. Those of one with a similar name stay."""

import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import Denied
from tests.local_aws.accounts import session_with

from common import names
from common.errors import ShoalError
from infra import policies
from shoal.aws.account import Account
from shoal.deployments.removal.inventory import inventory, left_over
from shoal.deployments.removal.kinds import KINDS
from shoal.deployments.removal.sweep import DELETED, KEPT, LEFT, UNVERIFIED, find_resources, sweep
from tests.shoal.cli.command import shoal_here
from tests.shoal.deployments.removal.plants import PLANTS, Planter, bucket, make_bucket

pytestmark = pytest.mark.usefixtures("account")


ARNS = yaml.safe_load(Path(__file__).with_name("arns.yaml").read_text())


@pytest.mark.soak
def test_leftovers_of_every_kind_are_deleted_and_those_of_the_neighbour_stay(account):
    nothing = inventory()
    neighbour = Planter("a-b")
    for plant in PLANTS.values():
        plant(neighbour)
    before = inventory()
    mine = Planter("a")
    for plant in PLANTS.values():
        plant(mine)
    planted = left_over(before, inventory())
    assert planted.keys() >= PLANTS.keys()
    person = Account(session_with(policies.document(policies.USER)))
    foreseen = find_resources("a", person)
    assert {thing.kind for thing in foreseen} >= PLANTS.keys()
    found = sweep("a", person, stuck_seconds=20)
    assert [(each.kind, each.why) for each in found if each.outcome != DELETED] == []
    assert left_over(before, inventory()) == {}
    assert left_over(inventory(), before) == {}
    sweep("a-b", account, stuck_seconds=20)
    assert left_over(nothing, inventory()) == {}


def test_a_kept_bucket_stays_and_an_empty_one_is_deleted(account):
    s3, _ = (make_bucket(f"shoal-keeper-{name}", "keeper", "true") for name in ("full", "empty"))
    s3.put_object(Bucket="shoal-keeper-full", Key="runs/one/model.pt", Body=b"x")
    outcomes = {thing.identifier: (thing.outcome, thing.costs) for thing in sweep("keeper", account)}
    assert outcomes == {"shoal-keeper-full": (KEPT, False), "shoal-keeper-empty": (DELETED, False)}
    assert s3.list_objects_v2(Bucket="shoal-keeper-full")["KeyCount"] == 1


def test_a_bucket_stays_as_long_as_a_run_in_it_was_not_fetched(aws, account):
    s3, run = make_bucket("shoal-waiting", "waiting", "unfetched"), "waiting.20260102T030405-0a1b"
    s3.put_object(Bucket="shoal-waiting", Key="datasets/x", Body=b"x")
    etag = s3.put_object(Bucket="shoal-waiting", Key=f"runs/{run}/summary.json", Body=b"{}")["ETag"]
    (bucket,) = sweep("waiting", account)
    assert (bucket.outcome, bucket.costs, bucket.runs) == (KEPT, False, [run])
    assert f"these runs were not fetched completely: {run}; " in bucket.why
    assert s3.list_objects_v2(Bucket="shoal-waiting")["KeyCount"] == 2
    noted = json.dumps({"summary.json": etag}).encode()
    s3.put_object(Bucket="shoal-waiting", Key=f"{names.FETCHED}{run}.json", Body=noted)
    for operation in ("ListObjectsV2", "GetObject"):
        with aws.faults.during(Denied(service="s3", operation=operation)):
            (bucket,) = sweep("waiting", account, stuck_seconds=0)
        assert (bucket.outcome, "it is unknown whether to keep its data" in bucket.why) == (UNVERIFIED, True)
    assert [each.outcome for each in sweep("waiting", account)] == [DELETED]


def test_a_kept_bucket_that_is_filled_after_the_search_stays(account):
    s3 = make_bucket("shoal-late", "late", "true")

    def fill_once(**_):
        s3.meta.events.unregister("before-call.s3.DeleteBucket", fill_once)
        s3.put_object(Bucket="shoal-late", Key="model.pt", Body=b"x")

    s3.meta.events.register("before-call.s3.DeleteBucket", fill_once)
    (bucket,) = sweep("late", account, stuck_seconds=0)
    assert (bucket.outcome, bucket.costs) == (KEPT, False)
    assert "aws s3 rb --force s3://shoal-late" in bucket.why
    s3.delete_object(Bucket="shoal-late", Key="model.pt")
    assert [thing.outcome for thing in sweep("late", account)] == [DELETED]


def test_a_bucket_with_unreadable_tags_is_not_deleted(aws, monkeypatch, account):
    s3 = make_bucket("shoal-dark", "late", "true")
    things = find_resources("late", account)
    monkeypatch.setattr("shoal.deployments.removal.sweep.find_resources", lambda *_: things)
    with aws.faults.during(Denied(service="s3", operation="GetBucketTagging")):
        (bucket,) = sweep("late", account, stuck_seconds=0)
    assert (bucket.outcome, "unknown whether to keep its data" in bucket.why) == (UNVERIFIED, True)
    s3.delete_bucket(Bucket="shoal-dark")


def test_a_foreign_rule_that_names_a_group_is_removed_and_the_foreign_group_stays(account):
    planter, ec2 = Planter("tied"), boto3.client("ec2")
    foreign = ec2.create_security_group(GroupName="theirs", Description="x")["GroupId"]
    for source in ({"UserIdGroupPairs": [{"GroupId": planter.group()}]}, {"IpRanges": [{"CidrIp": "10.1.0.0/16"}]}):
        rule = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, **source}
        ec2.authorize_security_group_ingress(GroupId=foreign, IpPermissions=[rule])
    assert {thing.outcome for thing in sweep("tied", account, stuck_seconds=20)} == {DELETED}
    (group,) = ec2.describe_security_groups(GroupIds=[foreign])["SecurityGroups"]
    assert [rule["IpRanges"] for rule in group["IpPermissions"] if rule["IpRanges"]] == [[{"CidrIp": "10.1.0.0/16"}]]
    assert not any(rule["UserIdGroupPairs"] for rule in group["IpPermissions"])
    ec2.delete_security_group(GroupId=foreign)


def test_a_resource_that_aws_does_not_delete_is_reported_with_the_reason(account):
    planter, ec2 = Planter("blocked"), boto3.client("ec2")
    asked = {"ImageId": "ami-1", "MinCount": 1, "MaxCount": 1, "SubnetId": planter.subnet()}
    made = ec2.run_instances(**asked, SecurityGroupIds=[planter.group()])
    instance = made["Instances"][0]["InstanceId"]
    group = {thing.kind: thing for thing in sweep("blocked", account, stuck_seconds=1)}["security group"]
    assert (group.outcome, group.costs) == (LEFT, False)
    assert f"dependent object: {instance}" in group.why
    ec2.terminate_instances(InstanceIds=[instance])
    assert {thing.outcome for thing in sweep("blocked", account, stuck_seconds=20)} == {DELETED}


def test_an_object_that_s3_does_not_delete_keeps_its_bucket_with_the_reason(account, monkeypatch):
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="shoal-held", ObjectLockEnabledForBucket=True)
    s3.put_bucket_tagging(Bucket="shoal-held", Tagging={"TagSet": [{"Key": names.TAG_DEPLOYMENT, "Value": "held"}]})
    s3.put_object(Bucket="shoal-held", Key="key", Body=b"x")
    s3.put_object_legal_hold(Bucket="shoal-held", Key="key", LegalHold={"Status": "ON"})
    (bucket,) = sweep("held", account, stuck_seconds=0)
    assert (bucket.outcome, bucket.costs) == (LEFT, True)
    assert "s3://shoal-held/key could not be deleted: Access Denied because object protected" in bucket.why
    monkeypatch.setattr("shoal.deployments.removal.sweep.LONGEST_SECONDS", 0.0)
    done = shoal_here("destroy", "held", "--yes")
    assert (done.returncode, "left and billed: 1 resource" in done.stdout) == (1, True)
    s3.put_object_legal_hold(Bucket="shoal-held", Key="key", LegalHold={"Status": "OFF"})
    assert [thing.outcome for thing in sweep("held", account)] == [DELETED]


def test_an_interface_of_another_service_is_reported_and_blocks_its_network_until_removed(account):
    ec2, planter = boto3.client("ec2"), Planter("shared")
    place = planter.subnet()
    held = ec2.create_network_interface(SubnetId=place, Description="of their function")
    interface = held["NetworkInterface"]["NetworkInterfaceId"]
    user = ec2.run_instances(ImageId="ami-1", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    ec2.attach_network_interface(NetworkInterfaceId=interface, InstanceId=user, DeviceIndex=1)
    by_kind = {thing.kind: thing for thing in sweep("shared", account, stuck_seconds=0)}
    assert (by_kind["subnet"].outcome, by_kind["vpc"].outcome) == (LEFT, LEFT)
    assert by_kind["subnet"].why == (f"network interfaces in it are still in use: {interface} (of their function)")
    ec2.terminate_instances(InstanceIds=[user])
    ec2.delete_network_interface(NetworkInterfaceId=interface)
    assert {thing.outcome for thing in sweep("shared", account, stuck_seconds=0)} == {DELETED}


def test_a_resource_that_ec2_reports_as_not_deleted_is_a_failure(account):
    failure = {"Unsuccessful": [{"ResourceId": "vpce-1", "Error": {"Code": "InUse", "Message": "it is in use"}}]}
    events, answer = account.client("ec2").meta.events, (Mock(status_code=200), failure)
    events.register("before-call.ec2.DeleteVpcEndpoints", lambda **_: answer, "answer")
    with pytest.raises(ShoalError, match="it is in use"):
        KINDS["vpc endpoint"].delete(account, "vpce-1", {})
    events.unregister("before-call.ec2.DeleteVpcEndpoints", unique_id="answer")


def test_clusters_are_listed_in_every_state_except_terminated(account):
    asked = []
    account.client("emr").meta.events.register(
        "provide-client-params.emr.ListClusters", lambda params, **_: asked.extend(params["ClusterStates"])
    )
    assert list(KINDS["emr cluster"].records(account)) == []
    states = account.client("emr").meta.service_model.shape_for("ClusterState").enum
    assert {*states} - {*asked} == {"TERMINATED", "TERMINATED_WITH_ERRORS"}


@pytest.fixture
def subnet_in(monkeypatch):
    """Function that makes the sweep find only a subnet, in each of these states in turn, and returns its deletions."""

    def make(*states):
        turns, deleted = iter(states), []
        kind = replace(
            KINDS["subnet"],
            listing=lambda _: ({"SubnetId": "subnet-1", "State": state} for state in [next(turns)] if state),
            owned=lambda *_: True,
            delete=lambda _, identifier, __: deleted.append(identifier),
        )
        monkeypatch.setattr("shoal.deployments.removal.sweep.KINDS", {"subnet": kind})
        return deleted

    return make


def test_a_resource_that_exists_after_its_deletion_is_deleted_again(subnet_in, monkeypatch):
    deleted = subnet_in("deleting", "delete_failed", "")
    monkeypatch.setattr("shoal.deployments.removal.sweep.LONGEST_SECONDS", 0.0)
    assert [thing.outcome for thing in sweep("a", Tagging(), stuck_seconds=0)] == [DELETED]
    assert deleted == ["subnet-1"]


def test_a_slow_deletion_is_polled_less_and_less_often(subnet_in, monkeypatch):
    subnet_in("available", *["deleting"] * 8, "deleted")
    pauses = []
    monkeypatch.setattr("shoal.deployments.removal.sweep.time.sleep", pauses.append)
    shown = []
    things = sweep("a", Tagging(), progress=lambda *counts: shown.append(counts))
    assert [thing.outcome for thing in things] == [DELETED]
    assert shown == [*[(0, 1)] * 8, (1, 1)]
    assert pauses == pytest.approx([0.2, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10])


class Tagging(Account):
    """Account in which only the tagging service answers, with these resources."""

    def __init__(self, *arns):
        super().__init__()
        self._arns = arns

    def pages(self, service, operation, **parameters):
        if (service, parameters.keys()) == ("resourcegroupstaggingapi", {"TagFilters"}):
            yield {"ResourceTagMappingList": [{"ResourceARN": arn} for arn in self._arns]}
        elif operation != "get_resources":
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, operation)


def test_the_tagging_service_finds_resources_of_every_kind_that_is_denied():
    with_arns = {kind: ARNS[kind] for kind in KINDS if kind in ARNS}
    things = [
        thing for thing in find_resources("a", Tagging(*(arn for arn, _ in with_arns.values()))) if thing.kind in KINDS
    ]
    unlisted = {thing.kind for thing in things if (thing.identifier, thing.outcome) == ("(all)", UNVERIFIED)}
    assert unlisted == KINDS.keys()
    named = {kind: identifier for kind, (_, identifier) in with_arns.items()}
    assert {thing.kind: thing.identifier for thing in things if thing.identifier != "(all)"} == named


def test_without_the_tagging_service_the_services_own_lists_suffice(aws, account):
    planter = Planter("untagged")
    planter.subnet()
    bucket(planter)
    with aws.faults.during(Denied(service="tagging")):
        things = {thing.kind: thing for thing in sweep("untagged", account, stuck_seconds=20)}
    assert "did not answer" in things["other"].why
    outcomes = {kind: thing.outcome for kind, thing in things.items()}
    assert outcomes == {"other": UNVERIFIED, **dict.fromkeys(("s3 bucket", "subnet", "vpc"), DELETED)}


def test_every_page_of_a_list_is_read(account):
    ssm, names = boto3.client("ssm"), {f"/many/{number}" for number in range(60)}
    for name in names:
        ssm.put_parameter(Name=name, Value="x", Type="String")
    assert {name for name, _ in KINDS["ssm parameter"].records(account)} >= names
    for name in names:
        ssm.delete_parameter(Name=name)
