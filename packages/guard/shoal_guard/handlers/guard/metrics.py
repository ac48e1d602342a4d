"""Reads from CloudWatch whether a cluster was idle. CloudWatch's newest values arrive late."""

from datetime import datetime
from typing import Any

from .rules import GuardSettings


def idle_values(cloudwatch: Any, settings: GuardSettings, now: datetime, cluster: str) -> list[float]:
    """Return the values of EMR's metric `IsIdle` in the last `idle_minutes`."""
    answer = cloudwatch.get_metric_statistics(
        Namespace="AWS/ElasticMapReduce",
        MetricName="IsIdle",
        Dimensions=[{"Name": "JobFlowId", "Value": cluster}],
        StartTime=now - settings.idle,
        EndTime=now,
        Period=int(settings.period.total_seconds()),
        Statistics=["Minimum"],
    )
    return [point["Minimum"] for point in answer["Datapoints"]]
