"""Computes the metric `IsIdle`, which EMR sends to CloudWatch every five minutes.

The points are computed when a client asks, from the cluster's history. A request may end later than now, because a
function under test has a clock of its own; it is answered as if the cluster stays in its present state.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shoal_local_aws.emr.api import clusters
from shoal_local_aws.emr.cluster import TERMINATED
from shoal_local_aws.seams import cloudwatch
from shoal_local_aws.service import Record, parameter

_NAMESPACE, _NAME, _DIMENSION = "AWS/ElasticMapReduce", "IsIdle", "JobFlowId"
_EVERY = 300
_POINTS = 1440


def install() -> None:
    """Compute the points before statistics are returned."""
    cloudwatch.statistics.wrap(_with_points)


def _with_points(answer: Callable[..., Any]) -> Callable[..., Any]:
    def answered(parameters: Record, data: Record, is_cbor: bool, is_json: bool = False) -> Any:
        given = data.get("EndTime") if is_cbor or is_json else parameter(parameters, "EndTime")
        end = cloudwatch.moment(given) or time.time()
        for cluster in clusters():
            dimensions = {_DIMENSION: cluster.record["Id"]}
            published: list[Record] = [
                {"Timestamp": moment, "Value": value, "Unit": "None", "Dimensions": dimensions}
                for moment, value in points(cluster.history, end)
            ]
            cloudwatch.set_points(_NAMESPACE, _NAME, dimensions, published)
        return answer(parameters, data, is_cbor, is_json)

    return answered


def points(history: Sequence[tuple[float, str]], end: float) -> Iterator[tuple[float, float]]:
    """The points that a cluster publishes until `end`: their times, and 1 where it was idle, else 0.

    Args:
        history: each state of the cluster with the time of its beginning in seconds, ascending.
    """
    ready = next((since for since, state in history if state in ("WAITING", "RUNNING")), end)
    last = min([end, *(since for since, state in history if state in TERMINATED)])
    first = max(ready, last - _EVERY * _POINTS)
    moment = -(-first // _EVERY) * _EVERY
    while moment < last:
        state = [state for since, state in history if since <= moment][-1]
        yield moment, float(state == "WAITING")
        moment += _EVERY
