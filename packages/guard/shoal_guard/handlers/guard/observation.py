"""State of a deployment as the guard observes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

BOOT, METAL_BOOT = timedelta(minutes=20), timedelta(minutes=40)
"""Time that a node, or a bare-metal node, may take until its first report. `shoal train` waits slightly less long."""


@dataclass(frozen=True, kw_only=True)
class ObservedMachine:
    """A running machine, with its price in dollars per hour and its start time."""

    price: float
    since: datetime


@dataclass(frozen=True, kw_only=True)
class ObservedNode(ObservedMachine):
    """A GPU node or a reader. `last_report` is the time at which it last reported its boot or its work."""

    last_report: datetime | None = None
    boot: timedelta = BOOT
    """Time that the node may take until its first report."""


@dataclass(frozen=True, kw_only=True)
class ObservedCluster:
    """An EMR cluster that has not terminated."""

    identifier: str
    state: str
    idle_since: datetime
    """Time at which the newest step ended or, without steps, the cluster became ready."""
    idle_values: Sequence[float] = ()
    """Values of EMR's metric `IsIdle`, 1 for idle. They may miss a short step between two values."""
    machines: Sequence[ObservedMachine] = ()


@dataclass(frozen=True, kw_only=True)
class ObservedJob(ObservedMachine):
    """A SageMaker training job that has not ended."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Observation:
    """State of a deployment as one round of the guard read it."""

    created: datetime
    extension: float = 0.0
    groups: Sequence[str] = ()
    """Auto scaling groups with a desired capacity above 0."""
    persistent_groups: Sequence[str] = ()
    """Those of `groups` that keep their nodes between runs."""
    run_is_active: bool = False
    """Whether a requested run has not ended."""
    ended_run: str = ""
    """Name of the last requested run if all runs have ended and none keeps its nodes; otherwise empty."""
    nodes: Sequence[ObservedNode] = ()
    clusters: Sequence[ObservedCluster] = ()
    jobs: Sequence[ObservedJob] = ()
    by_use: float = 0.0
    """Dollars that AWS has billed by use since the stack's creation."""
    complete: bool = True
    """Whether all reads of the round succeeded."""

    @property
    def machines(self) -> list[ObservedMachine]:
        return [*self.nodes, *self.jobs, *(machine for cluster in self.clusters for machine in cluster.machines)]
