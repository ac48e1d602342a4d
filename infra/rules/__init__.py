"""The rules of the preflight: each class checks one thing that can be wrong with a topology.

A rule must never raise, because `cdk destroy` reads the same topologies: a machine type that AWS retires tomorrow must
not prevent the deletion of what runs today.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from infra.parts import NodeGroup
from infra.topology import Topology

Level = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A problem that a rule has found; an error stops a deployment. `sentence` is for the user."""

    level: Level
    rule: str
    sentence: str


class Rule(ABC):
    """One thing that can be wrong with a topology."""

    level: ClassVar[Level]

    @abstractmethod
    def check(self, topology: Topology) -> Iterator[str]:
        """Yield a sentence for each problem that the rule finds."""


def group_label(number: int, group: NodeGroup) -> str:
    """The name of a node group in messages; `number` counts from 1."""
    return f"training {number} ({group.name})"
