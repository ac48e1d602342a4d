"""Reads CloudWatch metrics: whether a cluster was idle, and how many bytes AWS bills for file systems and NAT gateways.

CloudWatch's newest values arrive late. So each round reads the byte counts since the stack's creation again.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from .rules import GuardSettings

_GIB = 2**30
_DAY = timedelta(days=1)
"""Period of a byte count. It is so long that one request returns all values, because CloudWatch returns at most
1,440."""
BYTES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "AWS::EFS::FileSystem": (
        "AWS/EFS",
        "FileSystemId",
        {
            "DataReadIOBytes": "efs_read_gib",
            "MetadataReadIOBytes": "efs_read_gib",
            "DataWriteIOBytes": "efs_write_gib",
            "MetadataWriteIOBytes": "efs_write_gib",
        },
    ),
    "AWS::EC2::NatGateway": (
        "AWS/NATGateway",
        "NatGatewayId",
        {"BytesInFromSource": "nat_gib", "BytesInFromDestination": "nat_gib"},
    ),
}
"""CloudWatch namespace, dimension and metrics by resource type. A metric's key is the name of its price in
`GuardSettings.by_use`.

Sources, read 2026-11-29: "How do I estimate Elastic Throughput mode costs for Amazon EFS" (AWS re:Post), and "Monitor
NAT gateways with Amazon CloudWatch". A gateway is billed for the traffic that it processes, in both directions.
"""


def dollars_by_use(
    cloudwatch: Any, settings: GuardSettings, resources: Iterable[tuple[str, str]], since: datetime, now: datetime
) -> float:
    """Return the dollars that AWS bills for the use of `resources` (type and name of each) from `since` to `now`."""
    spent = 0.0
    for kind, name in resources:
        namespace, dimension, metrics = BYTES.get(kind, ("", "", {}))
        for metric, price in metrics.items():
            if price in settings.by_use:
                values = _values(cloudwatch, (namespace, metric, dimension, name), "Sum", since, now, _DAY)
                spent += sum(values) / _GIB * settings.by_use[price]
    return spent


def idle_values(cloudwatch: Any, settings: GuardSettings, now: datetime, cluster: str) -> list[float]:
    """Return the values of EMR's metric `IsIdle` in the last `idle_minutes`."""
    metric = ("AWS/ElasticMapReduce", "IsIdle", "JobFlowId", cluster)
    return _values(cloudwatch, metric, "Minimum", now - settings.idle, now, settings.period)


def _values(
    cloudwatch: Any,
    metric: tuple[str, str, str, str],
    statistic: str,
    since: datetime,
    now: datetime,
    period: timedelta,
) -> list[float]:
    namespace, name, dimension, value = metric
    answer = cloudwatch.get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": dimension, "Value": value}],
        StartTime=since,
        EndTime=now,
        Period=int(period.total_seconds()),
        Statistics=[statistic],
    )
    return [point[statistic] for point in answer["Datapoints"]]
