"""Documents that nodes write: the members of an attempt, the status of each node, and the end of a run.

Anyone who controls a node can write these documents, so all of them are validated when they are read.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from bootstrap.node.documents import (
    MAX_GPUS,
    MAX_NODES,
    OUTCOMES,
    PHASES,
    Count,
    Instance,
    JsonDocument,
    RunRequest,
    Sentence,
    TokenDocument,
    require,
)
from common import names
from common.checked_values import matching, of_length, one_of, within

MAX_ATTEMPTS = 999_999
LEAVES = ("", "now", "off")
"""Reasons why a node is about to terminate. `now`: AWS reclaims the spot node within two minutes; `off`: the node is
shutting down; empty: the node is not about to terminate."""
_LATEST = 2.5e11
"""Seconds from 1970 to about the year 9900, the latest time that a date can represent."""
_Address = Annotated[str, matching("the IPv4 address of a node", names.ADDRESS)]
_Gpus = Annotated[int, within(0, MAX_GPUS)]


@dataclass(frozen=True, kw_only=True)
class Member(JsonDocument):
    """Node that is a member of an attempt."""

    instance: Instance
    address: _Address
    """Private IPv4 address."""
    gpus: _Gpus
    """Number of GPUs, each with one rank; 0 for a reader."""


@dataclass(frozen=True, kw_only=True)
class Attempt(TokenDocument):
    """Nodes that execute a launch together, until a node is lost or a new node joins.

    The nodes agree on an attempt through a conditional write. Each agent stops the ranks of older attempts.
    """

    number: Annotated[int, within(1, MAX_ATTEMPTS)]
    """Number of the attempt, counted over all launches of the run."""
    members: Annotated[tuple[Member, ...], of_length(1, 2 * MAX_NODES)]
    """Training nodes first, then readers. The first node serves NFS and copies the results."""
    port: Annotated[int, within(1024, 64_999)]
    """Port on the first node that the ranks use for the rendezvous."""
    step: Count = 0
    """Step of the newest checkpoint when the attempt started."""
    fruitless: Count = 0
    """Number of consecutive earlier attempts that started at the same step."""
    why: Sentence = ""
    """Reason why the previous attempt ended."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.members[0].gpus > 0, "the first node has no GPU")
        require(len(set(self.instances)) == len(self.members), "a node is named twice")
        require(self.fruitless < self.number, f"fruitless must be less than {self.number}")

    @property
    def trainers(self) -> tuple[Member, ...]:
        return tuple(each for each in self.members if each.gpus)

    @property
    def instances(self) -> tuple[str, ...]:
        return tuple(each.instance for each in self.members)

    @property
    def name(self) -> str:
        """Name of the folder on each node that contains the attempt's programs."""
        return f"{self.token}-{self.number}"

    def readers_on(self, instance: str, request: RunRequest) -> list[int]:
        """Return the numbers of the readers that run on a node.

        The readers are distributed over the reader nodes. Without reader nodes, the first training node runs all
        readers.
        """
        where = [each.instance for each in self.members if not each.gpus] or [self.members[0].instance]
        count = request.stream.readers if request.stream else 0
        return [reader for reader in range(count) if where[reader % len(where)] == instance]


@dataclass(frozen=True, kw_only=True)
class NodeStatus(TokenDocument):
    """Status that a node reports for a launch."""

    phase: Annotated[str, one_of(PHASES)]
    attempt: Count = 0
    """Number of the node's attempt; 0 while the node waits for an attempt."""
    address: Annotated[str, matching("an IPv4 address, or empty", re.compile(f"({names.ADDRESS.pattern})?"))] = ""
    """Private IPv4 address of the node; empty if the node cannot use the request."""
    gpus: _Gpus = 0
    """Number of GPUs, each with one rank; 0 for a reader."""
    error: Sentence = ""
    """Error message; empty if the node's ranks failed, because the ranks' logs explain the failure."""
    ranks: int | None = None
    """Exit status of the node's ranks if they failed."""
    lost: bool = False
    """Whether a program was stopped by another process, or has no known exit status, for example after a reboot."""
    read: Count = 0
    """Bytes of text read so far, decompressed."""
    lines: Count = 0
    """Total number of lines, set once all texts are read. `malformed` counts malformed lines, and `empty` counts texts
    without words."""
    malformed: Count = 0
    empty: Count = 0
    waits: bool = False
    """Whether the node's ranks wait for lost ranks of other nodes."""
    step: Count | None = None
    """Latest step in the run's record; None if the node does not train or the record is empty."""
    steps: Count | None = None
    """Total number of steps of the run; None for an endless run."""
    ends: Annotated[float, within(0, _LATEST)] | None = None
    """Expected time of the last step in seconds since 1970; None if unknown."""
    starts: Count | None = None
    """Number of starts of the run's ranks, including starts that resumed the run."""
    trouble: Sentence = ""
    """Problem that does not stop the node."""
    leaves: Annotated[str, one_of(LEAVES)] = ""
    """Reason why the node is about to terminate. All nodes then stop with a checkpoint, and the other nodes continue
    without this node."""
    gpu_use: Annotated[int, within(0, 100)] | None = None
    """Mean utilization of the node's GPUs in percent; None if unknown."""

    @property
    def fails(self) -> bool:
        """True if the node cannot continue. All other nodes then stop, too."""
        return bool(self.error) or self.lost or self.ranks is not None

    @property
    def over(self) -> bool:
        """True if the node has finished its work for the attempt, or has failed."""
        return self.phase in ("done", "failed")

    def member(self, instance: str) -> Member | None:
        """Return the node as a member of an attempt, or None if it has not reported an address."""
        return Member(instance=instance, address=self.address, gpus=self.gpus) if self.address else None

    def has_reached(self, phase: str) -> bool:
        """Return whether the node has reached a phase. Return False if the node failed."""
        return self.phase != "failed" and PHASES.index(self.phase) >= PHASES.index(phase)


@dataclass(frozen=True, kw_only=True)
class RunEnd(TokenDocument):
    """End of a launch of a run."""

    outcome: Annotated[str, one_of(OUTCOMES)]
    error: Sentence = ""
    """Error message; empty if ranks failed, because the ranks' logs explain the failure."""
