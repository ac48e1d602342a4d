"""CloudWatch: the points of metrics, operations that return points, and actions of alarms."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import MinistackModule, PatchPoint, Record

_cloudwatch, _sns = MinistackModule("services.cloudwatch"), MinistackModule("services.sns")

statistics: PatchPoint[Callable[..., Any]] = PatchPoint("_get_metric_statistics", _cloudwatch)
"""GetMetricStatistics. Arguments: the request's parameters, its decoded body, whether the body was CBOR, whether it was
JSON."""

moment: Callable[[Any], float | None] = _cloudwatch.take("_parse_ts")
"""Returns a time in a request as Unix seconds, or None if it is missing."""

alarm_actions: PatchPoint[Callable[..., None]] = PatchPoint("_dispatch_alarm_actions", _cloudwatch)
"""Publishes a change of an alarm's state. Arguments: the alarm's record, old state, new state, reason."""

alarm_history: Callable[[], list[Record]] = _cloudwatch.take("_history_entries")

topic: Callable[[str], Record | None] = _sns.take("_topic_by_arn_any_scope")
"""Returns the record of the SNS topic with an ARN, including its `attributes`; None if it does not exist."""

topic_admits: Callable[[str, str, str, str], bool] = _sns.take("topic_policy_allows")
"""Returns whether a topic's policy lets a service publish. Arguments: ARN of the topic, service, source's ARN, source's
account."""

_metrics: dict[tuple[str, str, str], list[Record]] = _cloudwatch.take("_metrics")
_key: Callable[[dict[str, str]], str] = _cloudwatch.take("_dims_key")


def set_points(namespace: str, name: str, dimensions: dict[str, str], points: list[Record]) -> None:
    """Replace the points of a metric. Each point has `Timestamp`, `Value`, `Unit` and `Dimensions`."""
    _metrics[namespace, name, _key(dimensions)] = points
