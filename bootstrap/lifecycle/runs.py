"""Runs on a deployment that some command has begun: trainings on nodes or by SageMaker, and preprocessings."""

from pathlib import Path
from typing import Any, Protocol

from bootstrap.agent.documents import FINGERPRINT
from bootstrap.aws.deployment import Deployment
from bootstrap.preprocessing.attaching import StartedPreprocessing, steps_of
from bootstrap.preprocessing.cluster import EmrCluster
from bootstrap.progress import Bars
from bootstrap.training.attaching import find_training, wanted_trainings
from infra import topology


class BegunRun(Protocol):
    """What verbs ask of a run, whatever its kind is."""

    name: str
    results: str
    """The command that copies its results from the data bucket; empty where they stay there."""
    continued: str
    """What continues it after a stop."""

    def stop(self, bars: Bars) -> tuple[str, str]:
        """Stop it; returns how it ended, and why it failed."""

    def follow(self, output: Path, bars: Bars) -> Any:
        """Follow it to its end, and copy to `output` what it leaves for that."""


def find_run(deployment: Deployment, run: str | None) -> BegunRun:
    """The run of this name, or else the first training that has not ended, or else the preprocessing that waits or
    runs, or else the last of what has ended. Raises ShoalError where there is none."""
    if FINGERPRINT.fullmatch(run) if run is not None else _preprocesses(deployment):
        return StartedPreprocessing(deployment, run)
    return find_training(deployment, run)


def _preprocesses(deployment: Deployment) -> bool:
    """Whether a run without a name is a preprocessing."""
    if topology.OUTPUT_CLUSTER_ID not in deployment.outputs:
        return False
    trainings = wanted_trainings(deployment)
    if not all(each.has_ended for each in trainings):
        return False
    return not trainings or steps_of(EmrCluster(deployment), None) is not None
