"""Search for the runs on a deployment: training runs on nodes or in SageMaker, and preprocessing runs."""

from common import names
from common.names import FINGERPRINT
from shoal.aws.deployment import Deployment
from shoal.backends.attaching import StartedTraining, current_trainings, find_training
from shoal.preprocessing.attaching import StartedPreprocessing, step_of
from shoal.preprocessing.cluster import EmrCluster


def find_run(deployment: Deployment, run: str | None) -> StartedTraining | StartedPreprocessing:
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
