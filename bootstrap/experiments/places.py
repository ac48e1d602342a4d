"""Where the runs of an experiment are made: what an arm is there, what a run takes and costs, and how it is made."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

from bootstrap.progress import Bars
from corpus.reading.sources import InputFile
from experiments.plans.parts import Arm
from experiments.plans.planned import PlannedRun
from experiments.plans.prices import RunPrice
from infra.topology import Topology, name_of

if TYPE_CHECKING:
    from bootstrap.aws.deployment import Deployment


class Place(Protocol):
    """This machine, or deployments, for experiments of one kind."""

    cores: int | None
    """Of this machine; None for deployments."""
    data: str | None
    """What stands for the data (experiments/plans/kept.py)."""

    def why_not(self, arm: Arm) -> str:
        """Why an arm cannot run here; empty where it can."""
        ...

    def deployment_of(self, arm: Arm) -> str | None:
        """The name of the deployment that an arm runs on."""
        ...

    def price(self, run: PlannedRun) -> RunPrice:
        """What a run would take and cost."""
        ...

    def is_finished(self, run: PlannedRun) -> bool:
        """Whether a run has come to its end before. Raises ExperimentError where its folder holds another one."""
        ...

    def make(self, run: PlannedRun, bars: Bars) -> str | None:
        """Make a run, or go on with one that was stopped; returns the name of the signal that stopped it."""
        ...


class Deployments:
    """Deployments by their topologies. Where a value is None, the topology is only to be priced."""

    def __init__(self, by_topology: Mapping[str, tuple[Topology, "Deployment | None"]]) -> None:
        self._by_topology = by_topology

    def why_not(self, arm: Arm) -> str:
        """Why an arm cannot run on them; empty where it can."""
        if arm.topology is None:
            return "it names no topology"
        if name_of(arm.topology) not in self._by_topology:
            return f"no --deployment has its topology {arm.topology}"
        return ""

    def topology(self, arm: Arm) -> Topology:
        """That of an arm that can run."""
        return self._by_topology[name_of(str(arm.topology))][0]

    def of(self, arm: Arm) -> "Deployment":
        """That of an arm that can run."""
        found = self._by_topology[name_of(str(arm.topology))][1]
        assert found is not None
        return found

    def name_of(self, arm: Arm) -> str | None:
        """The name of an arm's deployment."""
        found = self._by_topology[name_of(str(arm.topology))][1]
        return found.name if found else None


def digest_of_files(files: Sequence[InputFile]) -> str:
    """What stands for input that is not a dataset: it follows from the files' names, sizes and times."""
    named = "".join(f"{each.address}\0{each.size}\0{each.identity}\0" for each in files)
    return blake2b(named.encode(), digest_size=16).hexdigest()
