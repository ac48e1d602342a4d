"""Helpers for tests of the preflight: topologies and findings."""

from typing import Any

import boto3

from bootstrap.lifecycle import preflight
from infra import topology

GPU = {"name": "fast", "instance_type": "g5.xlarge", "count": 2}
PRIMARY = {"instance_type": "m5.xlarge"}


def of(**fields: Any) -> topology.Topology:
    return topology.Topology.model_validate({"name": "mine", "description": "x", **fields})


def rules(found: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Return level and rule of each finding."""
    return [(level, rule) for level, rule, _ in found]


def findings(asking: boto3.Session, wanted: topology.Topology, owner: str = "ada") -> list[tuple[str, str, str]]:
    _, found = preflight.online(wanted, asking, deployment="mine", owner=owner)
    return [(each.level, each.rule, each.sentence) for each in found if each.rule != "not_prepared"]
