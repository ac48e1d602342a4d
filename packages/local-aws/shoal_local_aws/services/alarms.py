"""Lets a CloudWatch alarm publish only to topics that permit this, and records refusals in the alarm's history."""

from typing import Any

from shoal_local_aws.seams import cloudwatch, requests
from shoal_local_aws.service import Record

_ACTIONS = ("AlarmActions", "OKActions", "InsufficientDataActions")


def install() -> None:
    """Make ministack check a topic before an alarm publishes to it."""
    publish = cloudwatch.alarm_actions.now

    def published(alarm: Record, *change: Any) -> None:
        refused = {
            topic: why for each in _ACTIONS for topic in alarm.get(each) or () if (why := _refusal(alarm, topic))
        }
        for topic, why in refused.items():
            cloudwatch.alarm_history().append(
                {
                    "AlarmName": alarm["AlarmName"],
                    "AlarmType": "MetricAlarm",
                    "Timestamp": requests.now(),
                    "HistoryItemType": "Action",
                    "HistorySummary": f'Failed to execute action {topic}. Received error: "{why}"',
                }
            )
        admitted = {each: [topic for topic in alarm.get(each) or () if topic not in refused] for each in _ACTIONS}
        publish({**alarm, **admitted}, *change)

    cloudwatch.alarm_actions.put(published)


def _refusal(alarm: Record, topic: str) -> str:
    """Return why a topic refuses an alarm, or an empty string. Encryption keys of topics are not checked."""
    arn = alarm["AlarmArn"]
    if cloudwatch.topic(topic) is None:
        return ""
    # Rule: A topic's policy admits alarms. Source: "Why didn't I receive an SNS notification for my CloudWatch alarm
    # trigger?"
    if not cloudwatch.topic_admits(topic, "cloudwatch.amazonaws.com", arn, requests.account()):
        return f"Resource: {arn} is not authorized to perform: SNS:Publish on resource: {topic}"
    return ""
