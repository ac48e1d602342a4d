"""The rules of the preflight: each function checks one thing that can be wrong with a topology.

A rule must never raise, because `cdk destroy` reads the same topologies: a machine type that AWS retires tomorrow must
not prevent the deletion of what runs today.
"""

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from infra.parts import NodeGroup
from infra.topology import Topology

Level = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A problem that a rule has found; an error stops a deployment. `sentence` is for the user."""

    level: Level
    rule: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class PreflightInput:
    """What is to be deployed, for how many hours, and the day for which AWS's support is checked."""

    topology: Topology
    hours: float
    today: datetime.date


Rule = Callable[[PreflightInput], Iterator[str]]
"""Checks one thing that can be wrong with a topology, and yields a sentence for each problem that it finds."""


def group_label(number: int, group: NodeGroup) -> str:
    """The name of a node group in messages; `number` counts from 1."""
    return f"training {number} ({group.name})"
