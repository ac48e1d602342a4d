"""Rules of the offline preflight. Each rule is a function that checks a topology for one mistake.

A rule must never raise, because `cdk destroy` reads the same topologies. An instance type that AWS retires tomorrow
must not prevent the deletion of a running deployment.
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
    """Problem that a rule found. If it is an error, it stops the deployment. `sentence` is the message for the user."""

    level: Level
    rule: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class PreflightInput:
    """Topology to check, the planned hours of the deployment, and the day on which AWS must still support the instance
    types and versions."""

    topology: Topology
    hours: float
    today: datetime.date


Rule = Callable[[PreflightInput], Iterator[str]]
"""Function that yields one message for each problem that it finds."""


def group_label(number: int, group: NodeGroup) -> str:
    """Return the name of a node group for messages. `number` is its position in the topology, from 1."""
    return f"training {number} ({group.name})"
