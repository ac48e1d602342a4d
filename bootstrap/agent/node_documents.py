"""The documents in which nodes tell what they do: who takes part in an attempt, what each has done, how a run ended.

Whoever took over a node can write them, so all are checked when they are read.
"""

from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

from bootstrap.agent.documents import (
    INSTANCE,
    MOST_COUNTED,
    MOST_ERROR,
    MOST_GPUS,
    MOST_NODES,
    OUTCOMES,
    PHASES,
    TOKEN,
    JsonDocument,
    RunRequest,
    require,
)
from common.errors import DataError

MOST_ATTEMPTS = 999_999
LEAVES_NOW = ("now", "off")
"""AWS ends a spot node in two minutes; a node is being shut down."""
LEAVES = ("", "soon", *LEAVES_NOW)
"""`soon`: AWS advises to replace a spot node."""
_LATEST = 2.5e11
"""Seconds from 1970 to about the year 9900: no later one is a date."""
_PORTS = range(1024, 65_000)


@dataclass(frozen=True, kw_only=True)
class Member:
    """A node of a run. Raises DataError for values that cannot be."""

    instance: str
    address: str
    """Its private IPv4 address."""
    gpus: int
    """A rank each; 0 of a node that only reads."""

    def __post_init__(self) -> None:
        require(INSTANCE.fullmatch(self.instance), f"{self.instance!r} is not the id of an instance")
        try:
            IPv4Address(self.address)
        except AddressValueError:
            raise DataError(f"{self.address!r} is not the address of a node") from None
        require(0 <= self.gpus <= MOST_GPUS, f"gpus is {self.gpus}, but must be 0 to {MOST_GPUS}")


@dataclass(frozen=True, kw_only=True)
class Attempt(JsonDocument):
    """Which nodes run a launch together, until one of them is lost or another one comes.

    The nodes agree on it by a conditional write. Ranks of an older attempt are stopped. Raises DataError for values
    that cannot be.
    """

    number: int
    """From 1, over all launches of the run."""
    token: str
    """Of the launch."""
    members: tuple[Member, ...]
    """Those that train, the first of which serves NFS and copies the results, and then those that read."""
    port: int
    """Of the first node, where ranks meet."""
    step: int = 0
    """That of the newest checkpoint when it began."""
    fruitless: int = 0
    """How many attempts before it began at the same step."""
    why: str = ""
    """What ended the one before: a sentence."""

    def __post_init__(self) -> None:
        require(0 < self.number <= MOST_ATTEMPTS, f"the number {self.number} of an attempt cannot be")
        require(TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        require(0 < len(self.members) <= 2 * MOST_NODES, f"an attempt has 1 to {2 * MOST_NODES:,} nodes")
        require(self.members[0].gpus > 0, "the first node has no GPU")
        require(len({each.instance for each in self.members}) == len(self.members), "a node is named twice")
        require(self.port in _PORTS, f"the port {self.port} cannot be used")
        require(0 <= self.step < MOST_COUNTED, "a step cannot be")
        require(0 <= self.fruitless <= self.number, "a count cannot be")
        require(len(self.why) <= MOST_ERROR, "its reason is too long")

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
class NodeStatus(JsonDocument):
    """What a node has done of a request. Raises DataError for values that cannot be."""

    token: str
    """Of the request."""
    phase: str
    """One of PHASES."""
    attempt: int = 0
    """The number of the attempt that it is in; 0: it waits for one."""
    address: str = ""
    """Its private IPv4 address."""
    gpus: int = 0
    """A rank each; 0 of a node that only reads."""
    error: str = ""
    """Why it failed: a sentence. Empty where its ranks failed, whose logs tell that."""
    ranks: int | None = None
    """The exit status of its ranks, if they failed."""
    lost: bool = False
    """Whether a program of it has ended with nobody seeing how, or was ended by somebody else, as when the node was
    started anew."""
    read: int = 0
    """Bytes of the texts that it has read, decompressed."""
    lines: int = 0
    """When all texts are read: the lines, how many of them are malformed, and how many have a text without words."""
    malformed: int = 0
    empty: int = 0
    waits: bool = False
    """Whether its ranks wait for those of other nodes, as when they lost them."""
    step: int | None = None
    """The latest in the run's record; None of a node that does not train, or where nothing is recorded yet."""
    steps: int | None = None
    """Those of the whole run; None also of one without an end."""
    trial: int | None = None
    """Of a search of settings, which goes on; None else."""
    searched: float | None = None
    """The share of the search's time that is over."""
    ends: float | None = None
    """When the last step is expected, in seconds since 1970; None where nobody can tell."""
    starts: int | None = None
    """How often the ranks of the run were started, resumed trainings included."""
    trouble: str = ""
    """What is wrong with it, although it goes on."""
    leaves: str = ""
    """Whether it is about to end: one of LEAVES."""
    gpu_use: int | None = None
    """Percent of the time in which its GPUs compute, their mean; None where the node cannot tell."""

    def __post_init__(self) -> None:
        require(TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        require(self.phase in PHASES, f"{self.phase!r} is not a phase")
        require(self.leaves in LEAVES, f"{self.leaves!r} does not say whether a node leaves")
        require(max(len(self.error), len(self.trouble)) <= MOST_ERROR, "its error is too long")
        read = (self.read, self.lines, self.malformed, self.empty)
        counts = (*read, self.step or 0, self.steps or 0, self.trial or 0, self.starts or 0, self.attempt, self.gpus)
        require(all(0 <= each < MOST_COUNTED for each in counts), "a count cannot be")
        require(self.ends is None or 0 <= self.ends < _LATEST, "its end cannot be")
        require(self.searched is None or 0 <= self.searched <= 1, "the share of a search cannot be")
        require(self.gpu_use is None or 0 <= self.gpu_use <= 100, "the use of its GPUs cannot be")

    @property
    def fails(self) -> bool:
        """Whether it cannot go on, so that no other node can."""
        return bool(self.error) or self.lost or self.ranks is not None

    @property
    def leaves_now(self) -> bool:
        """Whether all others stop with a checkpoint, and go on without it."""
        return self.leaves in LEAVES_NOW

    @property
    def over(self) -> bool:
        """Whether the node does nothing more for the request."""
        return self.phase in ("done", "failed")

    def member(self, instance: str) -> Member | None:
        """The node as a member of an attempt; None where it has told no address."""
        try:
            return Member(instance=instance, address=self.address, gpus=self.gpus)
        except DataError:
            return None

    def has_come_to(self, phase: str) -> bool:
        """Whether it is in this phase, or was before; one that failed has come nowhere."""
        return self.phase != "failed" and PHASES.index(self.phase) >= PHASES.index(phase)


@dataclass(frozen=True, kw_only=True)
class RunEnd(JsonDocument):
    """That a launch of a run has ended. Raises DataError for values that cannot be."""

    token: str
    """Of the launch."""
    outcome: str
    """One of OUTCOMES."""
    error: str = ""
    """Why it failed: a sentence. Empty where its ranks failed, whose logs tell that."""

    def __post_init__(self) -> None:
        require(TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        require(self.outcome in OUTCOMES, f"{self.outcome!r} is not an outcome")
        require(len(self.error) <= MOST_ERROR, "its error is too long")
