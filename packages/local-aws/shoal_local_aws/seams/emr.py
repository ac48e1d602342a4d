"""EMR: its clusters and their steps."""

from collections.abc import Callable

from shoal_local_aws.seams.lookup import MinistackModule, Operations, Record, Seam, Table

_emr = MinistackModule("services.emr")

operations = Operations(_emr, "_HANDLERS")

clusters: Table = _emr.take("_clusters")
"""What DescribeCluster shows, by the clusters' ids."""

steps: dict[str, list[Record]] = _emr.take("_steps")
"""What ListSteps shows, by the clusters' ids, in the order of their submission."""

make_step: Seam[Callable[[Record], Record]] = Seam("_make_step", _emr)
"""A step's record, from its configuration in the request."""
