"""Leftovers of a deployment are found and deleted, kind by kind. Those of one with a similar name stay."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_guard.errors import SweepError
from shoal_guard.sweep.kinds import ResourceKind
from shoal_guard.sweep.sweeping import DELETED, KEPT, LEFT, UNVERIFIED
from shoal_local_aws.faults.kinds import Denied, Throttled
from tests.local_aws.accounts import session_with

from bootstrap.aws.account import Account
from bootstrap.cli.main import main
from bootstrap.removal.inventory import inventory, left_over
from bootstrap.removal.ownership import KINDS
from bootstrap.removal.sweep import find_resources, sweep
from infra import policies, topology
from tests.bootstrap.removal.plants import PLANTS, Planter, bucket, make_bucket, oddly_named

pytestmark = pytest.mark.usefixtures("aws")


@cache
def shared() -> Account:
    """Session shared by all tests: creating clients takes longer than their answers."""
    return Account()


@pytest.mark.soak
def test_leftovers_of_every_kind_are_deleted_and_those_of_the_neighbour_stay():
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
    sweep("a-b", shared(), stuck_seconds=20)
    assert left_over(nothing, inventory()) == {}


def test_a_kept_bucket_stays_and_an_empty_one_is_deleted():
    s3, _ = (make_bucket(f"shoal-keeper-{name}", "keeper", "true") for name in ("full", "empty"))
    s3.put_object(Bucket="shoal-keeper-full", Key="runs/one/model.pt", Body=b"x")
    outcomes = {thing.identifier: (thing.outcome, thing.costs) for thing in sweep("keeper", shared())}
    assert outcomes == {"shoal-keeper-full": (KEPT, False), "shoal-keeper-empty": (DELETED, False)}
    assert s3.list_objects_v2(Bucket="shoal-keeper-full")["KeyCount"] == 1


def test_a_bucket_stays_as_long_as_a_run_in_it_was_not_fetched(aws):
    s3, run = make_bucket("shoal-waiting", "waiting", "unfetched"), "waiting.20260102T030405-0a1b"
    s3.put_object(Bucket="shoal-waiting", Key="datasets/x", Body=b"x")
    etag = s3.put_object(Bucket="shoal-waiting", Key=f"runs/{run}/summary.json", Body=b"{}")["ETag"]
    (bucket,) = sweep("waiting", shared())
    assert (bucket.outcome, bucket.costs, bucket.runs) == (KEPT, False, [run])
    assert f"these runs were not fetched completely: {run}; " in bucket.why
    assert s3.list_objects_v2(Bucket="shoal-waiting")["KeyCount"] == 2
    noted = json.dumps({"summary.json": etag}).encode()
    s3.put_object(Bucket="shoal-waiting", Key=f"{topology.FETCHED_PREFIX}{run}.json", Body=noted)
    for operation in ("ListObjectsV2", "GetObject"):
        with aws.faults.during(Denied(service="s3", operation=operation)):
            (bucket,) = sweep("waiting", shared(), stuck_seconds=0)
        assert (bucket.outcome, "it is unknown whether to keep its data" in bucket.why) == (UNVERIFIED, True)
    assert [each.outcome for each in sweep("waiting", shared())] == [DELETED]


def test_a_kept_bucket_that_is_filled_after_the_search_stays():
    s3, account, filled = make_bucket("shoal-late", "late", "true"), Account(), []

    def fill_once(**_):
        if not filled:
            filled.append(s3.put_object(Bucket="shoal-late", Key="model.pt", Body=b"x"))

    account.session.events.register("before-call.s3.DeleteBucket", fill_once)
    (bucket,) = sweep("late", account, stuck_seconds=0)
    assert (bucket.outcome, bucket.costs) == (KEPT, False)
    assert "aws s3 rb --force s3://shoal-late" in bucket.why
    s3.delete_object(Bucket="shoal-late", Key="model.pt")
    assert [thing.outcome for thing in sweep("late", shared())] == [DELETED]


def test_a_bucket_with_unreadable_tags_is_not_deleted(aws, monkeypatch):
    s3, faults = make_bucket("shoal-dark", "late", "true"), []

    def find_then_lose_sight(deployment, account):
        found = find_resources(deployment, account)
        faults.append(aws.faults.add(Denied(service="s3", operation="GetBucketTagging")))
        return found

    monkeypatch.setattr("bootstrap.removal.sweep.find_resources", find_then_lose_sight)
    (bucket,) = sweep("late", shared(), stuck_seconds=0)
    aws.faults.lift(*faults)
    assert bucket.outcome == UNVERIFIED
    assert "it is unknown whether to keep its data" in bucket.why
    s3.delete_bucket(Bucket="shoal-dark")


def test_a_foreign_rule_that_names_a_group_is_removed_and_the_foreign_group_stays():
    planter, ec2 = Planter("tied"), boto3.client("ec2")
    foreign = ec2.create_security_group(GroupName="theirs", Description="x")["GroupId"]
    for source in ({"UserIdGroupPairs": [{"GroupId": planter.group()}]}, {"IpRanges": [{"CidrIp": "10.1.0.0/16"}]}):
        ec2.authorize_security_group_ingress(
            GroupId=foreign, IpPermissions=[{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, **source}]
        )
    assert {thing.outcome for thing in sweep("tied", shared(), stuck_seconds=20)} == {DELETED}
    (group,) = ec2.describe_security_groups(GroupIds=[foreign])["SecurityGroups"]
    assert [rule["IpRanges"] for rule in group["IpPermissions"] if rule["IpRanges"]] == [[{"CidrIp": "10.1.0.0/16"}]]
    assert not any(rule["UserIdGroupPairs"] for rule in group["IpPermissions"])
    ec2.delete_security_group(GroupId=foreign)


def test_a_resource_that_aws_does_not_delete_is_reported_with_the_reason():
    planter, ec2 = Planter("blocked"), boto3.client("ec2")
    group = planter.group()
    instance = ec2.run_instances(
        ImageId="ami-1", MinCount=1, MaxCount=1, SubnetId=planter.subnet(), SecurityGroupIds=[group]
    )["Instances"][0]["InstanceId"]
    found = {thing.kind: thing for thing in sweep("blocked", shared(), stuck_seconds=1)}
    assert found["security group"].outcome == LEFT
    assert f"dependent object: {instance}" in found["security group"].why
    assert not found["security group"].costs
    ec2.terminate_instances(InstanceIds=[instance])
    assert {thing.outcome for thing in sweep("blocked", shared(), stuck_seconds=20)} == {DELETED}


def test_an_object_that_s3_does_not_delete_keeps_its_bucket_with_the_reason():
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="shoal-held", ObjectLockEnabledForBucket=True)
    s3.put_bucket_tagging(Bucket="shoal-held", Tagging={"TagSet": [{"Key": topology.TAG_DEPLOYMENT, "Value": "held"}]})
    s3.put_object(Bucket="shoal-held", Key="key", Body=b"x")
    s3.put_object_legal_hold(Bucket="shoal-held", Key="key", LegalHold={"Status": "ON"})
    (bucket,) = sweep("held", shared(), stuck_seconds=0)
    assert (bucket.outcome, bucket.costs) == (LEFT, True)
    assert "s3://shoal-held/key could not be deleted: Access Denied because object protected" in bucket.why
    s3.put_object_legal_hold(Bucket="shoal-held", Key="key", LegalHold={"Status": "OFF"})
    assert [thing.outcome for thing in sweep("held", shared())] == [DELETED]


def test_a_bucket_with_keys_that_xml_cannot_represent_is_deleted(monkeypatch):
    s3 = oddly_named("shoal-odd", monkeypatch)
    s3.put_bucket_tagging(Bucket="shoal-odd", Tagging={"TagSet": [{"Key": topology.TAG_DEPLOYMENT, "Value": "odd"}]})
    (bucket,) = sweep("odd", Account(), stuck_seconds=0)
    assert (bucket.outcome, bucket.why) == (DELETED, "")


def test_an_interface_of_another_service_is_reported_and_blocks_its_network_until_removed():
    ec2, planter = boto3.client("ec2"), Planter("shared")
    place = planter.subnet()
    held = ec2.create_network_interface(SubnetId=place, Description="of their function")["NetworkInterface"]
    interface = held["NetworkInterfaceId"]
    user = ec2.run_instances(ImageId="ami-0a1b2c3d4e5f60718", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    ec2.attach_network_interface(NetworkInterfaceId=interface, InstanceId=user, DeviceIndex=1)
    by_kind = {thing.kind: thing for thing in sweep("shared", shared(), stuck_seconds=0)}
    assert (by_kind["subnet"].outcome, by_kind["vpc"].outcome) == (LEFT, LEFT)
    assert by_kind["subnet"].why == (f"network interfaces in it are still in use: {interface} (of their function)")
    ec2.terminate_instances(InstanceIds=[user])
    ec2.delete_network_interface(NetworkInterfaceId=interface)
    assert {thing.outcome for thing in sweep("shared", shared(), stuck_seconds=0)} == {DELETED}


class Restricted(Account):
    """Account that refuses some operations; the emulator does not enforce policies."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self._refused = refused

    def pages(self, service: str, operation: str, **parameters: Any) -> Iterator[Any]:
        if operation in self._refused:
            raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "not you"}}, operation)
        yield from super().pages(service, operation, **parameters)


def test_a_kind_without_permission_to_list_does_not_count_as_deleted():
    (unseen,) = sweep("nobody", Restricted("describe_volumes"))
    assert (unseen.kind, unseen.outcome) == ("volume", UNVERIFIED)
    assert "AWS did not list it (not you)" in unseen.why


def test_a_resource_that_ec2_reports_as_not_deleted_is_a_failure():
    account = Account()
    refused = {"Unsuccessful": [{"ResourceId": "vpce-1", "Error": {"Code": "InUse", "Message": "it is in use"}}]}
    account.session.events.register("before-call.ec2.DeleteVpcEndpoints", lambda **_: (Mock(status_code=200), refused))
    delete = KINDS["vpc endpoint"].delete
    assert delete is not None
    with pytest.raises(SweepError, match="it is in use"):
        delete(account, "vpce-1", {})


def test_clusters_are_listed_in_every_state_except_terminated():
    account, asked = Account(), []
    account.session.events.register(
        "provide-client-params.emr.ListClusters", lambda params, **_: asked.extend(params["ClusterStates"])
    )
    assert list(KINDS["emr cluster"].records(account)) == []
    states = account.client("emr").meta.service_model.shape_for("ClusterState").enum
    assert {*states} - {*asked} == {"TERMINATED", "TERMINATED_WITH_ERRORS"}


def test_a_resource_that_exists_after_its_deletion_is_deleted_again(tagging, monkeypatch):
    states, deleted = iter([["deleting"], ["delete_failed"], []]), []
    kind = replace(
        KINDS["subnet"],
        listing=lambda _: ({"SubnetId": "get_resources", "State": state} for state in next(states)),
        owned=lambda *_: True,
        delete=lambda _, identifier, __: deleted.append(identifier),
        arn="any:(.+)",
    )
    with_kinds(monkeypatch, {"subnet": kind})
    monkeypatch.setattr("shoal_guard.sweep.sweeping.LONGEST_SECONDS", 0.0)
    assert [thing.outcome for thing in sweep("nobody", tagging, stuck_seconds=0)] == [DELETED]
    assert deleted == ["get_resources"]


def test_a_slow_deletion_is_polled_less_and_less_often(tagging, monkeypatch):
    states = iter(["available", *["deleting"] * 8, "deleted"])
    kind = replace(
        KINDS["subnet"],
        listing=lambda _: iter([{"SubnetId": "get_resources", "State": next(states)}]),
        owned=lambda *_: True,
        delete=lambda *_: None,
    )
    pauses: list[float] = []
    with_kinds(monkeypatch, {"subnet": kind})
    monkeypatch.setattr("shoal_guard.sweep.sweeping.time.sleep", pauses.append)
    gone, _ = sweep("nobody", tagging)
    assert gone.outcome == DELETED
    assert pauses == pytest.approx([0.2, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10])


class Tagging(Account):
    """Account in which only the tagging service answers, with one resource of each deployment."""

    def pages(self, service: str, operation: str, **parameters: Any) -> Iterator[Any]:
        if (service, parameters.keys()) == ("resourcegroupstaggingapi", {"TagFilters"}):
            yield {"ResourceTagMappingList": [{"ResourceARN": f"arn:aws:any:{self.region}:000000000000:{operation}"}]}


def with_kinds(monkeypatch: pytest.MonkeyPatch, kinds: Mapping[str, ResourceKind]) -> None:
    """Restrict the sweep to these kinds."""
    monkeypatch.setattr("bootstrap.removal.sweep.KINDS", kinds)
    monkeypatch.setattr("shoal_guard.sweep.sweeping.KINDS", kinds)


@pytest.fixture(scope="module")
def tagging() -> Tagging:
    """Account shared by all tests: creating clients takes longer than their answers."""
    return Tagging()


@pytest.mark.parametrize("name", KINDS)
def test_the_tagging_service_finds_resources_of_every_kind_that_is_denied(name, tagging, monkeypatch):
    def refused(_account):
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "List")

    kind = replace(KINDS[name], listing=refused, arn="any:(.+)", is_global=False)
    with_kinds(monkeypatch, {name: kind})
    unlisted, named = find_resources("nobody", tagging)
    assert (unlisted.kind, unlisted.outcome) == (name, UNVERIFIED)
    assert (named.kind, named.identifier) == (name, "get_resources")


def test_a_topic_found_only_by_its_arn_is_deleted(aws, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    topic = Planter("by-arn").topic()
    with aws.faults.during(Throttled(service="sns", operation="ListTopics", times=1)):
        unlisted, named = sweep("by-arn", Account(), stuck_seconds=0)
    assert (unlisted.kind, unlisted.outcome) == ("sns topic", UNVERIFIED)
    assert (named.identifier, named.outcome) == (topic, DELETED)
    assert find_resources("by-arn", Account()) == []


def test_without_the_tagging_service_the_services_own_lists_suffice():
    planter = Planter("untagged")
    planter.subnet()
    bucket(planter)
    said, *found = sorted(
        sweep("untagged", Restricted("get_resources"), stuck_seconds=20), key=lambda it: it.kind != "other"
    )
    assert "did not answer (not you)" in said.why
    assert said.outcome == UNVERIFIED
    assert sorted((thing.kind, thing.outcome) for thing in found) == [
        (kind, DELETED) for kind in ("s3 bucket", "subnet", "vpc")
    ]


def test_a_resource_that_costs_money_and_is_not_deleted_is_a_failure(capfd):
    kms = boto3.client("kms")
    key = kms.create_key(Tags=[{"TagKey": topology.TAG_DEPLOYMENT, "TagValue": "keyed"}])["KeyMetadata"]["KeyId"]
    assert main(["destroy", "keyed", "--yes"]) == 1
    said = capfd.readouterr().out
    assert key in said
    assert "left and billed: 1 resource" in said


def test_every_page_of_a_list_is_read():
    ssm, names = boto3.client("ssm"), {f"/many/{number}" for number in range(60)}
    for name in names:
        ssm.put_parameter(Name=name, Value="x", Type="String")
    assert {name for name, _ in KINDS["ssm parameter"].records(shared())} >= names
    for name in names:
        ssm.delete_parameter(Name=name)
