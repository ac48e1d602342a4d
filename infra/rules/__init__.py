"""The rules of the preflight: one thing that can be wrong with a topology, a class.

Easy to get wrong: a rule never raises. `cdk destroy` reads the same topologies, and a machine type that AWS retires
tomorrow must not keep anybody from deleting what runs today.
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
    """What a rule has found: whether it stops a deployment, and the sentence that its user reads."""

    level: Level
    rule: str
    sentence: str


class Rule(ABC):
    """One thing that can be wrong with a topology."""

    level: ClassVar[Level]

    @abstractmethod
    def check(self, topology: Topology) -> Iterator[str]:
        """A sentence for each time that it is wrong."""


def group_label(number: int, group: NodeGroup) -> str:
    """A node group as a reader counts, from 1."""
    return f"training {number} ({group.name})"
