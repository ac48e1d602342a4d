"""Places that execute an experiment's runs. A place knows which arms it can run, and a run's expected time and cost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bootstrap.training.places.local import LocalPlace
from bootstrap.training.places.place import Place
from common.cores import cores
from experiments.estimate import NOTHING
from experiments.plans.parts import Arm, PlannedRun
from experiments.plans.prices import DatasetSize, RunPrice, training_price, unknown_price
from infra.topology import Topology, name_of
from trainer.config import TrainConfig
from trainer.output.run_files import CHECKPOINT_PATTERN, CHECKPOINTS, was_stopped
from trainer.registry import MODELS

if TYPE_CHECKING:
    from bootstrap.aws.deployment import Deployment


class LocalMachine:
    """This machine. Runs are free of charge."""

    def __init__(self) -> None:
        self.cores: int | None = cores()

    def why_not(self, arm: Arm) -> str:
        """Return why an arm cannot run on this machine, or "". The arm's field `local` says how to run it here."""
        return "" if arm.local else "it has no field `local`, which says how to run it on this machine"

    def deployment_of(self, arm: Arm) -> str | None:  # noqa: ARG002
        """Return None: the run needs no deployment."""
        return None

    def place(self, arm: Arm) -> Place:
        assert arm.local is not None
        return LocalPlace(arm.local.world_size)

    def can_resume(self, run: PlannedRun) -> bool:
        """Return whether the run's folder has a checkpoint to resume from."""
        return any((run.folder / CHECKPOINTS).glob(CHECKPOINT_PATTERN))

    def price(self, run: PlannedRun, config: TrainConfig, size: DatasetSize | None) -> RunPrice:  # noqa: ARG002
        return unknown_price("training time on this machine is unknown", dollars=NOTHING)


class Deployments:
    """Deployments by topology. A topology without a deployment (None) serves to price runs, but cannot execute them."""

    def __init__(self, by_topology: Mapping[str, tuple[Topology, "Deployment | None"]]) -> None:
        self.cores: int | None = None
        self._by_topology = by_topology

    def why_not(self, arm: Arm) -> str:
        """Return why none of the deployments can run an arm, or ""."""
        if arm.topology is None:
            return "it has no topology"
        if name_of(arm.topology) not in self._by_topology:
            return f"no given deployment has its topology {arm.topology}"
        return ""

    def deployment_of(self, arm: Arm) -> str | None:
        deployment = self._by_topology[name_of(str(arm.topology))][1]
        return deployment.name if deployment else None

    def topology(self, arm: Arm) -> Topology:
        return self._by_topology[name_of(str(arm.topology))][0]

    def deployment(self, arm: Arm) -> "Deployment":
        """Return the deployment that runs an arm. `why_not` must be "" for this arm."""
        deployment = self._by_topology[name_of(str(arm.topology))][1]
        assert deployment is not None
        return deployment

    def place(self, arm: Arm) -> Place:
        """Return the place where an arm's runs train: its deployment's nodes, or managed training."""
        from bootstrap.training.attaching import place_on

        return place_on(self.deployment(arm))

    def can_resume(self, run: PlannedRun) -> bool:
        """Return whether the run was stopped, according to the results that were copied to this machine."""
        return was_stopped(run.folder)

    def price(self, run: PlannedRun, config: TrainConfig, size: DatasetSize | None) -> RunPrice:
        """Return a training run's expected time and cost, from the price list and measured GPU speeds.

        Set `size` to None if the source is not a dataset, or if the dataset's size is unknown on this machine.
        """
        if MODELS[config.model].learns == "words":
            return unknown_price("training time of word embeddings is unknown")
        if size is None:
            return unknown_price("the size of the deployment's newest dataset is unknown; give the dataset with --data")
        return training_price(self.topology(run.arm), config, size)


Where = LocalMachine | Deployments
