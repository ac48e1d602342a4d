"""CloudWatch: the points of metrics, the operations that return them, and the actions of alarms."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import MinistackModule, Record, Seam

_cloudwatch, _sns = MinistackModule("services.cloudwatch"), MinistackModule("services.sns")

statistics: Seam[Callable[..., Any]] = Seam("_get_metric_statistics", _cloudwatch)
"""GetMetricStatistics: the request's parameters, its decoded body, and whether that was CBOR or JSON."""

moment: Callable[[Any], float | None] = _cloudwatch.take("_parse_ts")
"""A time of a request in seconds; None where it gives none."""

alarm_actions: Seam[Callable[..., None]] = Seam("_dispatch_alarm_actions", _cloudwatch)
"""Publishes the change of an alarm: the alarm's record, its old and new state, and the reason."""

alarm_history: Callable[[], list[Record]] = _cloudwatch.take("_history_entries")

topic: Callable[[str], Record | None] = _sns.take("_topic_by_arn_any_scope")
"""The record of a topic of SNS, with its `attributes`; None where there is none."""

topic_admits: Callable[[str, str, str, str], bool] = _sns.take("topic_policy_allows")
"""Whether a topic's policy lets a service publish: the topic's ARN, the service, the source's ARN, its account."""

_metrics: dict[tuple[str, str, str], list[Record]] = _cloudwatch.take("_metrics")
_key: Callable[[dict[str, str]], str] = _cloudwatch.take("_dims_key")


def set_points(namespace: str, name: str, dimensions: dict[str, str], points: list[Record]) -> None:
    """Replace a metric's points: each has `Timestamp`, `Value`, `Unit` and `Dimensions`."""
    _metrics[namespace, name, _key(dimensions)] = points
