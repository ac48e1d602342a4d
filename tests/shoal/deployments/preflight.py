"""Topologies for tests of the preflight."""

from typing import Any

from infra import topology

GPU = {"name": "fast", "instance_type": "g5.xlarge", "count": 2}
PRIMARY = {"instance_type": "m5.xlarge"}
TRAINING: dict[str, Any] = {"training": [GPU], "share": "efs"}


def topology_of(**fields: Any) -> topology.Topology:
    return topology.Topology.model_validate({"name": "mine", "description": "x", **fields})
