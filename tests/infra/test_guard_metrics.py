"""What CloudWatch has to do with the guard: who watches the guard."""

from pathlib import Path

import boto3

from embedded.aws import EmbeddedAws
from tests.infra.guarded import Deployed


def test_a_guard_that_fails_or_is_not_run_is_reported_by_mail(aws: EmbeddedAws, tmp_path: Path) -> None:
    small = Deployed(boto3.client, tmp_path)  # type: ignore[arg-type]
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
