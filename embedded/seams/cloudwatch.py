"""CloudWatch: the points of metrics, and the operations that return them."""

from collections.abc import Callable
from typing import Any

from embedded.seams.lookup import MinistackModule, Record, Seam

_cloudwatch = MinistackModule("services.cloudwatch")

statistics: Seam[Callable[..., Any]] = Seam("_get_metric_statistics", _cloudwatch)
"""GetMetricStatistics: the request's parameters, its decoded body, and whether that was CBOR or JSON."""

moment: Callable[[Any], float | None] = _cloudwatch.take("_parse_ts")
"""A time of a request in seconds; None where it gives none."""

_metrics: dict[tuple[str, str, str], list[Record]] = _cloudwatch.take("_metrics")
_key: Callable[[dict[str, str]], str] = _cloudwatch.take("_dims_key")


def set_points(namespace: str, name: str, dimensions: dict[str, str], points: list[Record]) -> None:
    """Replace a metric's points: each has `Timestamp`, `Value`, `Unit` and `Dimensions`."""
    _metrics[namespace, name, _key(dimensions)] = points
