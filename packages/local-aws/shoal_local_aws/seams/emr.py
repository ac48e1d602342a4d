"""EMR: clusters and their steps."""

from collections.abc import Callable

from shoal_local_aws.seams.lookup import MinistackModule, Operations, PatchPoint, Record, Table

_emr = MinistackModule("services.emr")

operations = Operations(_emr, "_HANDLERS")

clusters: Table = _emr.take("_clusters")
"""Records that DescribeCluster returns, by cluster id."""

steps: dict[str, list[Record]] = _emr.take("_steps")
"""Records that ListSteps returns, by cluster id, in the order of submission."""

make_step: PatchPoint[Callable[[Record], Record]] = PatchPoint("_make_step", _emr)
"""Returns a step's record from its configuration in the request."""
