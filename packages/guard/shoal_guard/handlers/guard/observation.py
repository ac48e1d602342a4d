"""State of a deployment as the guard observes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

BOOT, METAL_BOOT = timedelta(minutes=20), timedelta(minutes=40)
"""Time in which a node may boot before it first reports. It is slightly longer than `shoal train` waits."""


@dataclass(frozen=True, kw_only=True)
class ObservedMachine:
    """A running machine: its price in dollars an hour and its start time."""

    price: float
    since: datetime


@dataclass(frozen=True, kw_only=True)
class ObservedNode(ObservedMachine):
    """A node that trains or reads. `last_report` is the time of its last report of boot or work."""

    last_report: datetime | None = None
    boot: timedelta = BOOT
    """Time that the node may take to its first report."""


@dataclass(frozen=True, kw_only=True)
class ObservedCluster:
    """An EMR cluster that has not terminated."""

    identifier: str
    state: str
    idle_since: datetime
    """Time at which the cluster became ready or its newest step ended."""
    idle_values: Sequence[float] = ()
    """Values of EMR's metric `IsIdle`, 1 for idle. A short step may run between two values."""
    machines: Sequence[ObservedMachine] = ()


@dataclass(frozen=True, kw_only=True)
class ObservedJob(ObservedMachine):
    """A training job of SageMaker that has not ended."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Observation:
    """State of a deployment as one round of the guard read it."""

    created: datetime
    extension: float = 0.0
    groups: Sequence[str] = ()
    """Auto scaling groups with a desired capacity above 0."""
    persistent_groups: Sequence[str] = ()
    """Groups with nodes that also run between trainings."""
    run_is_active: bool = False
    """Whether a requested run has not ended."""
    ended_run: str = ""
    """Last requested run, if all runs have ended and no run keeps its nodes; empty otherwise."""
    nodes: Sequence[ObservedNode] = ()
    clusters: Sequence[ObservedCluster] = ()
    jobs: Sequence[ObservedJob] = ()
    by_use: float = 0.0
    """Dollars billed by use since the stack's creation."""
    complete: bool = True
    """Whether every read succeeded."""

    @property
    def machines(self) -> list[ObservedMachine]:
        return [*self.nodes, *self.jobs, *(machine for cluster in self.clusters for machine in cluster.machines)]
