"""Rules of the offline preflight: each function checks for one mistake in a topology.

A rule must never raise, because `cdk destroy` reads the same topologies: a type that AWS retires tomorrow must not
prevent the deletion of a running deployment.
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
    """Problem that a rule found. An error stops the deployment; `sentence` is the message for the user."""

    level: Level
    rule: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class PreflightInput:
    """Topology to check, planned hours, and the day on which AWS must still support its types and versions."""

    topology: Topology
    hours: float
    today: datetime.date


Rule = Callable[[PreflightInput], Iterator[str]]
"""Function that yields a message for each problem that it finds."""


def group_label(number: int, group: NodeGroup) -> str:
    """Return the name of a node group for messages; `number` counts from 1."""
    return f"training {number} ({group.name})"
