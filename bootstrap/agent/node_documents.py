"""The documents in which nodes tell what they do: who takes part in an attempt, what each has done, how a run ended.

Whoever took over a node can write them, so all are checked when they are read.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from bootstrap.agent.documents import (
    MOST_GPUS,
    MOST_NODES,
    OUTCOMES,
    PHASES,
    Count,
    Instance,
    JsonDocument,
    LaunchDocument,
    RunRequest,
    Sentence,
    require,
)
from common.json_values import long, matching, one_of, within

MOST_ATTEMPTS = 999_999
LEAVES = ("", "now", "off")
"""`now`: AWS ends a spot node in two minutes; `off`: a node is being shut down."""
_LATEST = 2.5e11
"""Seconds from 1970 to about the year 9900: no later one is a date."""
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
ADDRESS = re.compile(rf"{_BYTE}(\.{_BYTE}){{3}}")
"""An IPv4 address."""
_Address = Annotated[str, matching("the IPv4 address of a node", ADDRESS)]
_Gpus = Annotated[int, within(0, MOST_GPUS)]


@dataclass(frozen=True, kw_only=True)
class Member(JsonDocument):
    """A node of a run."""

    instance: Instance
    address: _Address
    """Its private one."""
    gpus: _Gpus
    """A rank each; 0 of a node that only reads."""


@dataclass(frozen=True, kw_only=True)
class Attempt(LaunchDocument):
    """Which nodes run a launch together, until one of them is lost or another one comes.

    The nodes agree on it by a conditional write. Ranks of an older attempt are stopped.
    """

    number: Annotated[int, within(1, MOST_ATTEMPTS)]
    """Over all launches of the run."""
    members: Annotated[tuple[Member, ...], long(1, 2 * MOST_NODES)]
    """Those that train, the first of which serves NFS and copies the results, and then those that read."""
    port: Annotated[int, within(1024, 64_999)]
    """Of the first node, where ranks meet."""
    step: Count = 0
    """That of the newest checkpoint when it began."""
    fruitless: Count = 0
    """How many attempts before it began at the same step."""
    why: Sentence = ""
    """What ended the one before."""

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
        """The folder of its programs on a node."""
        return f"{self.token}-{self.number}"

    def readers_on(self, instance: str, request: RunRequest) -> list[int]:
        """The numbers of the readers of a node: those that only read share them, or else the first that trains."""
        where = [each.instance for each in self.members if not each.gpus] or [self.members[0].instance]
        count = request.stream.readers if request.stream else 0
        return [reader for reader in range(count) if where[reader % len(where)] == instance]


@dataclass(frozen=True, kw_only=True)
class NodeStatus(LaunchDocument):
    """What a node has done of a request."""

    phase: Annotated[str, one_of(PHASES)]
    attempt: Count = 0
    """The number of the attempt that it is in; 0: it waits for one."""
    address: Annotated[str, matching("an IPv4 address, or empty", re.compile(f"({ADDRESS.pattern})?"))] = ""
    """Its private one; empty where it cannot use the request."""
    gpus: _Gpus = 0
    """A rank each; 0 of a node that only reads."""
    error: Sentence = ""
    """Why it failed. Empty where its ranks failed, whose logs tell that."""
    ranks: int | None = None
    """The exit status of its ranks, if they failed."""
    lost: bool = False
    """Whether a program of it has ended with nobody seeing how, or was ended by somebody else, as when the node was
    started anew."""
    read: Count = 0
    """Bytes of the texts that it has read, decompressed."""
    lines: Count = 0
    """When all texts are read: the lines, how many of them are malformed, and how many have a text without words."""
    malformed: Count = 0
    empty: Count = 0
    waits: bool = False
    """Whether its ranks wait for those of other nodes, as when they lost them."""
    step: Count | None = None
    """The latest in the run's record; None of a node that does not train, or where nothing is recorded yet."""
    steps: Count | None = None
    """Those of the whole run; None also of one without an end."""
    ends: Annotated[float, within(0, _LATEST)] | None = None
    """When the last step is expected, in seconds since 1970; None where nobody can tell."""
    starts: Count | None = None
    """How often the ranks of the run were started, resumed trainings included."""
    trouble: Sentence = ""
    """What is wrong with it, although it goes on."""
    leaves: Annotated[str, one_of(LEAVES)] = ""
    """Whether it is about to end, so that all others stop with a checkpoint and continue without it."""
    gpu_use: Annotated[int, within(0, 100)] | None = None
    """Percent of the time in which its GPUs compute, their mean; None where the node cannot tell."""

    @property
    def fails(self) -> bool:
        """Whether it cannot go on, so that no other node can."""
        return bool(self.error) or self.lost or self.ranks is not None

    @property
    def over(self) -> bool:
        """Whether the node does nothing more for the request."""
        return self.phase in ("done", "failed")

    def member(self, instance: str) -> Member | None:
        """The node as a member of an attempt; None where it has told no address."""
        return Member(instance=instance, address=self.address, gpus=self.gpus) if self.address else None

    def has_come_to(self, phase: str) -> bool:
        """Whether it is in this phase, or was before; one that failed has come nowhere."""
        return self.phase != "failed" and PHASES.index(self.phase) >= PHASES.index(phase)


@dataclass(frozen=True, kw_only=True)
class RunEnd(LaunchDocument):
    """That a launch of a run has ended."""

    outcome: Annotated[str, one_of(OUTCOMES)]
    error: Sentence = ""
    """Why it failed. Empty where its ranks failed, whose logs tell that."""
