import json

import pytest
from shoal_local_aws.aws import ACCOUNT, REGION

METRIC = {"Namespace": "AWS/Lambda", "MetricName": "Errors", "Statistic": "Sum", "Period": 300, "EvaluationPeriods": 1}
METRIC |= {"Threshold": 1, "ComparisonOperator": "GreaterThanOrEqualToThreshold"}
ALARM = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:"


def policy(principal, source):
    condition = {"ArnLike": {"aws:SourceArn": source}}
    may = {"Effect": "Allow", "Principal": principal, "Action": "sns:Publish", "Resource": "*", "Condition": condition}
    return json.dumps({"Version": "2012-10-17", "Statement": [may]})


CLOUDWATCH = {"Service": "cloudwatch.amazonaws.com"}


@pytest.mark.parametrize(
    ("name", "attributes", "refusal"),
    [
        ("usual", {}, ""),
        ("named", {"Policy": policy(CLOUDWATCH, f"{ALARM}named")}, ""),
        ("other", {"Policy": policy(CLOUDWATCH, f"{ALARM}named")}, "is not authorized to perform: SNS:Publish"),
        ("events", {"Policy": policy({"Service": "events.amazonaws.com"}, "*")}, "is not authorized"),
    ],
)
def test_an_alarm_publishes_only_to_a_topic_that_permits_cloudwatch(client, name, attributes, refusal):
    topic = client("sns").create_topic(Name=name, Attributes=attributes)["TopicArn"]
    queue = client("sqs").create_queue(QueueName=name)["QueueUrl"]
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"
    may = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn}
    body = json.dumps({"Version": "2012-10-17", "Statement": [may]})
    client("sqs").set_queue_attributes(QueueUrl=queue, Attributes={"Policy": body})
    client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    alarms = client("cloudwatch")
    alarms.put_metric_alarm(AlarmName=name, AlarmActions=[topic], **METRIC)
    alarms.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="a test")
    published = client("sqs").receive_message(QueueUrl=queue).get("Messages", [])
    assert bool(published) == (not refusal)
    history = alarms.describe_alarm_history(AlarmName=name, HistoryItemType="Action")["AlarmHistoryItems"]
    assert [refusal in each["HistorySummary"] for each in history] == ([True] if refusal else [])
