"""Computes the metric `IsIdle`, which EMR sends to CloudWatch every five minutes.

Each request computes the points from the cluster's history. The requested period may end in the future, because a
function under test has its own clock. Points in the future assume that the state of the cluster does not change.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shoal_local_aws.emr.api import clusters
from shoal_local_aws.emr.cluster import TERMINATED
from shoal_local_aws.seams import cloudwatch
from shoal_local_aws.service import Record, parameter

_NAMESPACE, _NAME, _DIMENSION = "AWS/ElasticMapReduce", "IsIdle", "JobFlowId"
# Rule: Metrics are updated every five minutes. Source: "Monitoring Amazon EMR metrics with CloudWatch".
_EVERY = 300
_POINTS = 1440


def install() -> None:
    """Make CloudWatch compute the points before it returns statistics."""
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
    """Yield the points that a cluster publishes until `end`: the time in Unix seconds, and 1 if idle or else 0.

    `history` has the start time in Unix seconds and the name of each state of the cluster, in ascending order.
    """
    ready = next((since for since, state in history if state in ("WAITING", "RUNNING")), end)
    last = min([end, *(since for since, state in history if state in TERMINATED)])
    first = max(ready, last - _EVERY * _POINTS)
    moment = -(-first // _EVERY) * _EVERY
    while moment < last:
        # Belief: A cluster is idle while it waits for steps. No check: it costs a cluster.
        state = [state for since, state in history if since <= moment][-1]
        yield moment, float(state == "WAITING")
        moment += _EVERY
