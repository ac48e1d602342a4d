from datetime import timedelta

import pytest

HUNDRED_GIB = 100 * 2**30


def test_efs_writes_and_nat_traffic_count_as_spent(deploy, aws):
    small = deploy(kind="Sharing", budget=1000.0)
    small.after(1)
    before = small.account()
    share = aws.folder / "efs" / small.physical("EFS::FileSystem")
    share.mkdir(parents=True)
    with (share / "checkpoint.pt").open("wb") as file:
        file.truncate(HUNDRED_GIB)
    small.after(1.01)
    written = small.account()
    assert written["by_use"] == pytest.approx(100 * 0.06)
    assert written["spent"] - before["spent"] == pytest.approx(6 + 0.01 * before["rate"], rel=0.01)
    gateway = [{"Name": "NatGatewayId", "Value": small.physical("EC2::NatGateway")}]
    at = small.created + timedelta(minutes=30)
    for metric in ("BytesInFromSource", "BytesInFromDestination", "BytesOutToSource", "BytesOutToDestination"):
        point = {"MetricName": metric, "Dimensions": gateway, "Timestamp": at, "Value": HUNDRED_GIB, "Unit": "Bytes"}
        small.client("cloudwatch").put_metric_data(Namespace="AWS/NATGateway", MetricData=[point])
    assert small.invoke(small.age(1.02)) == {}
    assert small.account()["by_use"] == pytest.approx(100 * 0.06 + 200 * 0.045)


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
