"""Search for the runs on a deployment: training runs on nodes or in SageMaker, and preprocessing runs."""

from pathlib import Path
from typing import Any, Protocol

from common import names
from common.names import FINGERPRINT
from shoal.aws.deployment import Deployment
from shoal.backends.attaching import current_trainings, find_training
from shoal.preprocessing.attaching import StartedPreprocessing, step_of
from shoal.preprocessing.cluster import EmrCluster


class RunHandle(Protocol):
    """Run that a command can follow or stop."""

    @property
    def name(self) -> str: ...

    @property
    def results(self) -> str:
        """Command that copies the results from the data bucket. Empty if the results remain in the bucket."""

    @property
    def continued(self) -> str:
        """Description of how to continue the run after a stop."""

    def stop(self) -> tuple[str, str]:
        """Stop the run. Return the outcome of the run and, if the run failed, the reason."""

    def follow(self, output: Path) -> Any:
        """Follow the run until it ends, and copy its results to `output`."""


def find_run(deployment: Deployment, run: str | None) -> RunHandle:
    """Return the run with this name.

    Without a name, return the first active training run. If none is active, return the active preprocessing run. If no
    run of either kind is active, return the run that ended last. Raises ShoalError if there is no such run.
    """
    if FINGERPRINT.fullmatch(run) if run is not None else _preprocesses(deployment):
        return StartedPreprocessing(deployment, run)
    return find_training(deployment, run)


def _preprocesses(deployment: Deployment) -> bool:
    """For a command without a run name, return whether the run to find is a preprocessing run."""
    if names.OUTPUT_CLUSTER_ID not in deployment.outputs:
        return False
    trainings = current_trainings(deployment)
    if not all(each.state.has_ended for each in trainings):
        return False
    return not trainings or step_of(EmrCluster(deployment), None) is not None
