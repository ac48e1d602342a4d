"""Tests of the guard's function in small stacks of the embedded AWS."""

import json
from datetime import timedelta

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_guard.handlers.guard import main, observation
from shoal_local_aws.faults.kinds import CreateFails, DeleteFails, Denied, StaysPending, Throttled

from common import names
from shoal.aws import scale_up
from shoal.aws.account import Account
from shoal.deployments.deletion import last_deletion
from shoal.deployments.fetch import fetch_runs, find_data_bucket
from shoal.deployments.kept import find_kept
from tests import slow
from tests.infra.grants import needed_by_none
from tests.waiting import until

RELEASE = "/test/release"
"""Parameter that ends the update of a stack."""

# Idleness


def test_a_node_may_boot_for_longer_than_shoal_train_waits_for_it():
    assert timedelta(seconds=scale_up.ready_seconds(["g5.xlarge"])) < observation.BOOT
    assert timedelta(seconds=scale_up.ready_seconds(["g4dn.metal"])) < observation.METAL_BOOT


def test_idle_nodes_and_clusters_end_and_data_stay(deploy):
    small = deploy()
    nodes = small.raise_groups()
    newest = max(small.sign(node, "json") for node in nodes)
    small.wake(newest + timedelta(minutes=29))
    assert (small.desired(), small.cluster_state(), small.mails()) == ([1, 1], "WAITING", [])
    assert small.invoke(newest + timedelta(minutes=31)) == {}
    assert (small.desired(), small.cluster_state()) == ([0, 0], "TERMINATED")
    subjects = sorted(subject.partition(f" of {small.name} ")[0] for subject in small.mails())
    assert subjects == ["Guard: the idle cluster", "Guard: the idle training nodes"]
    small.wake(newest + timedelta(minutes=36))
    assert small.mails() == []
    for name in (*small.groups(), small.physical("EMR::Cluster")):
        assert name in small.log()
    small.becomes("CREATE_COMPLETE")
    assert small.client("s3").list_objects_v2(Bucket=small.bucket, Prefix=names.NODES)["KeyCount"] == 2


def test_nodes_of_an_ended_run_stop_at_the_next_invocation_unless_the_run_keeps_them(deploy):
    small = deploy()
    newest = max(small.sign(node, "json") for node in small.raise_groups()) + timedelta(minutes=1)
    run, token = f"{small.name}.20260102T030405-0a1b", "0a1b2c3d"
    one = {"run": run, "token": token, "keep": False}
    for runs, end in (
        ((), token),
        ((one,), "ffffffff"),  # the end of an earlier launch
        (({**one, "keep": True},), token),
        ((one, {**one, "run": run.replace("0a1b", "ffff")}), token),
        (("no request",), token),
        (({**one, "run": "../x"},), token),
    ):
        small.want(*runs)
        small.end(run, end)
        small.wake(newest)
        assert small.desired() == [1, 1]
    small.want(one)
    assert small.invoke(newest + timedelta(minutes=5)) == {}
    assert (small.desired(), small.cluster_state()) == ([0, 0], "WAITING")
    assert small.mails() == [f"Guard: a run of {small.name} has ended"]


def test_at_the_end_of_life_a_run_is_stopped_before_the_deletion(deploy, aws):
    small = deploy(max_hours=1, idle_minutes=1440)
    for node in small.raise_groups():
        small.sign(node, "json")
    run = f"{small.name}.20260102T030405-0a1b"
    wanted = {"run": run, "token": "0a1b2c3d", "keep": False, "stop": False, "other": [1]}
    small.want(wanted)

    def has_asked():
        (asked,) = small.requested_runs()
        small.becomes("CREATE_COMPLETE")
        assert small.desired() == [1, 1]
        assert asked == {**wanted, "stop": asked["stop"]}
        small.want(wanted)
        return bool(asked["stop"])

    small.after(0.8)
    assert not has_asked()
    for service, operation in (("cloudformation", "ListStackResources"), ("autoscaling", "*"), ("ec2", "*")):
        with aws.faults.during(Denied(service=service, operation=operation)), pytest.raises(main.GuardRoundError):
            small.after(1.01)
        assert has_asked()
    assert small.invoke(small.age(1.05)) == {}
    assert has_asked()
    small.end(run, "0a1b2c3d")
    small.after(1.1)
    small.becomes("DELETE_COMPLETE")


def test_a_busy_node_keeps_all_nodes_and_a_running_step_keeps_its_cluster(deploy):
    small = deploy(idle_minutes=5, max_hours=100)
    step = {"Name": "work", "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["sleep", "300"]}}
    small.client("emr").add_job_flow_steps(JobFlowId=small.physical("EMR::Cluster"), Steps=[step])
    first, second = small.raise_groups()
    reported = max(small.sign(node, "json") for node in (first, second))
    worked = until(lambda: (at := small.sign(second, "busy")) >= reported + timedelta(seconds=2) and at, every=0.5)
    small.wake(worked + timedelta(minutes=5, seconds=-1))
    assert (small.desired(), small.cluster_state()) == ([1, 1], "RUNNING")
    small.wake(worked + timedelta(minutes=5, seconds=2))
    assert (small.desired(), small.cluster_state()) == ([0, 0], "RUNNING")
    small.after(99)
    assert small.cluster_state() == "RUNNING"


# The end


def test_the_stack_is_deleted_after_a_warning_even_if_nodes_are_busy(deploy):
    small = deploy()
    small.raise_groups()
    bucket, cluster = small.bucket, small.physical("EMR::Cluster")
    small.after(11.4)
    small.mails()
    small.after(11.6)
    assert small.mails() == [f"Guard: {small.name} ends soon"]
    small.after(11.9)
    small.becomes("CREATE_COMPLETE")
    assert small.invoke(small.age(12)) == {}
    small.becomes("DELETE_COMPLETE")
    assert small.mails() == [f"Guard: {small.name} is being deleted"]
    tagged = [{"Name": f"tag:{names.TAG_DEPLOYMENT}", "Values": [small.name]}]
    reservations = small.client("ec2").describe_instances(Filters=tagged)["Reservations"]
    assert {each["State"]["Name"] for reservation in reservations for each in reservation["Instances"]} == {
        "terminated"
    }
    assert small.client("emr").describe_cluster(ClusterId=cluster)["Cluster"]["Status"]["State"] == "TERMINATED"
    assert small.client("s3").head_bucket(Bucket=bucket)


def test_added_hours_move_the_end_and_deploying_again_does_not(deploy):
    small = deploy(kind="Guarded")
    small.after(11.6)
    small.spec = small.spec.model_copy(update={"guard": small.spec.guard.model_copy(update={"mail": None})})
    small.update(small.template())
    small.becomes("UPDATE_COMPLETE")
    parameter = names.extension_parameter(small.name)
    small.client("ssm").put_parameter(Name=parameter, Value="1.5", Type="String")
    small.after(12)
    small.after(13.1)
    small.becomes("UPDATE_COMPLETE")
    small.after(13.5)
    small.becomes("DELETE_COMPLETE")


def test_a_spent_budget_deletes_the_stack(deploy):
    small = deploy(budget=4.0, max_hours=100)
    small.raise_groups()
    small.after(1)
    rate = sum(small.prices["gpu"].values()) + small.prices["emr"]["m5.xlarge"] + small.prices["standing"]
    account = small.account()
    assert account["rate"] == pytest.approx(rate)
    assert account["spent"] == pytest.approx(rate, rel=0.02)
    small.mails()
    small.after(1 + 3.8 / account["rate"])
    small.becomes("CREATE_COMPLETE")
    assert f"Guard: {small.name} has spent its budget" in small.mails()
    small.after(6)
    small.becomes("DELETE_COMPLETE")
    deletion = last_deletion(Account(), small.name)
    assert (deletion.state, deletion.reason) == ("complete", "its budget of $4.00 is spent")


def test_a_failed_deletion_is_repeated(deploy, aws):
    small = deploy(max_hours=1)
    small.raise_groups()
    small.after(0.6)
    small.mails()
    with aws.faults.during(DeleteFails(resource_type="AWS::AutoScaling::AutoScalingGroup", times=1)):
        small.after(1)
        small.becomes("DELETE_FAILED")
    assert small.desired()[-1:] == [0]
    small.after(1.1)
    small.becomes("DELETE_COMPLETE")
    assert small.mails() == [f"Guard: {small.name} is being deleted"]


def test_an_incomplete_stack_is_deleted_too(deploy, aws):
    with aws.faults.during(CreateFails(resource_type="AWS::EMR::Cluster")):
        small = deploy(becomes="CREATE_FAILED")
    small.after(11.6)
    small.after(12)
    small.becomes("DELETE_COMPLETE")


@pytest.mark.parametrize(
    ("keep", "fetched", "stays"), [(None, False, True), (None, True, False), (False, False, False)], ids=str
)
def test_an_unfetched_run_outlives_the_deletion_unless_the_topology_discards_it(keep, fetched, stays, deploy, tmp_path):
    small = deploy(kind="Storing", keep=keep)
    s3, bucket, run = small.client("s3"), small.named("BucketsData"), f"{small.name}.20260102T030405-0a1b"
    s3.put_object(Bucket=bucket, Key=f"runs/{run}/model/config.json", Body=b"weights")
    if fetched:
        fetch_runs(s3, bucket, tmp_path)
    small.cloudformation.delete_stack(StackName=small.stack)
    small.becomes("DELETE_COMPLETE")
    ours = {each["Name"] for each in s3.list_buckets()["Buckets"]} & {bucket}
    assert ours == ({bucket} if stays else set())
    assert [each.bucket for each in find_kept(small.name, Account())[0]] == [*ours]
    if stays:
        body = s3.get_object(Bucket=bucket, Key=f"runs/{run}/model/config.json")["Body"]
        assert body.read() == b"weights"
        small.create()
        assert small.named("BucketsData") != bucket
        assert find_data_bucket(small.name, Account()) == bucket


# Failures


def test_nodes_that_never_run_cost_and_end_as_idle(deploy, aws):
    small = deploy()
    with aws.faults.during(StaysPending()):
        for group in small.groups():
            small.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
        small.after(0.01)
        assert small.account()["rate"] > sum(small.prices["gpu"].values())
        assert small.desired() == [1, 1]
        small.after(1)
        assert small.desired() == [0, 0]


def test_during_an_update_nodes_and_clusters_end_and_the_stack_after_it(deploy):
    small = deploy(idle_minutes=1440)
    small.raise_groups()
    small.after(11.6)
    assert (small.desired(), small.cluster_state()) == ([1, 1], "WAITING")
    template = json.loads(small.template())
    template["Resources"] |= slow.resources(50, until=RELEASE)
    small.update(json.dumps(template))
    with pytest.raises(main.GuardRoundError, match="UPDATE_IN_PROGRESS"):
        small.after(12)
    assert (small.desired(), small.cluster_state()) == ([0, 0], "TERMINATED")
    small.client("ssm").put_parameter(Name=RELEASE, Value="now", Type="String")
    small.becomes("UPDATE_COMPLETE")
    small.after(12.1)
    small.becomes("DELETE_COMPLETE")


def test_a_minimum_size_does_not_keep_idle_nodes(deploy, aws):
    small = deploy()
    small.raise_groups()
    for group in small.groups():
        small.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=group, MinSize=1)
    assert small.invoke(small.age(1)) == {}
    assert small.desired() == [0, 0]
    small.raise_groups()
    with aws.faults.during(Denied(service="autoscaling", operation="UpdateAutoScalingGroup")):
        small.after(2)
    assert small.desired() == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "operation", "left"),
    [
        ("elasticmapreduce", "DescribeCluster", ([0, 0], "WAITING")),
        ("s3", "ListObjectsV2", ([1, 1], "TERMINATED")),  # without activity markers nodes count as busy
    ],
)
def test_a_service_that_refuses_does_not_prevent_other_savings(service, operation, left, deploy, aws):
    small = deploy()
    small.raise_groups()
    with aws.faults.during(Throttled(service=service)), pytest.raises(main.GuardRoundError, match=operation):
        small.after(1)
    assert (small.desired(), small.cluster_state()) == left
    small.after(1.1)
    assert (small.desired(), small.cluster_state()) == ([0, 0], "TERMINATED")


def test_a_guard_that_fails_or_does_not_run_is_reported_by_email(deploy):
    small = deploy(kind="Guarded")
    alarms = small.client("cloudwatch")
    mine = [
        each for each in alarms.describe_alarms()["MetricAlarms"] if each["Dimensions"][0]["Value"] == small.function
    ]
    watched = {(each["MetricName"], each["ComparisonOperator"], each["TreatMissingData"]) for each in mine}
    assert watched == {
        ("Errors", "GreaterThanOrEqualToThreshold", "notBreaching"),
        ("Invocations", "LessThanThreshold", "breaching"),
    }
    assert {each["Period"] * each["EvaluationPeriods"] for each in mine} == {15 * 60}
    for each in mine:
        alarms.set_alarm_state(AlarmName=each["AlarmName"], StateValue="ALARM", StateReason="a test")
    assert sorted(small.mails()) == sorted(f'ALARM: "{each["AlarmName"]}" in us-east-1' for each in mine)


def test_a_deleted_stack_is_ignored(deploy, monkeypatch):
    gone = "arn:aws:cloudformation:us-east-1:000000000000:stack/Shoal-gone/0"
    settings = {
        "deployment": "gone",
        "stack": gone,
        "account": "/shoal/gone/guard",
        "extension": "/shoal/gone/extension",
    }
    settings |= {"max_hours": 1, "idle_minutes": 5, "gpu": {}, "emr": {}, "standing": 1}
    monkeypatch.setenv("SETTINGS", json.dumps(settings))
    main.handler({"time": "2030-01-01T00:00:00Z"}, None)
    with pytest.raises(ClientError, match="ParameterNotFound"):
        boto3.client("ssm").get_parameter(Name="/shoal/gone/guard")


def test_the_guard_has_no_unneeded_permission(aws, request):
    if sum(each.path == request.path for each in request.session.items) < 18:
        pytest.skip("needs the other tests of this file, which use these permissions")
    assert needed_by_none(aws.folder, "GuardRole87F67C2B") == set()
