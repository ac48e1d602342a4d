"""Finds the places where a deployment trains, and the runs that earlier commands started at these places."""

from botocore.exceptions import ClientError

from common.errors import ShoalError, UsageError
from shoal.aws.deployment import Deployment
from shoal.backends.bucket_place import BucketPlace, TrainingHandle
from shoal.backends.deployment import DeploymentPlace
from shoal.backends.managed import ManagedPlace
from shoal.runs.run import DEFAULT, LaunchOptions
from shoal.runs.state import Reports, RunOverview


def place_on(deployment: Deployment, launch_options: LaunchOptions = DEFAULT) -> BucketPlace:
    """Return the place where a deployment trains.

    The place is SageMaker if the option `managed` is set, or if the deployment has no GPU nodes. Otherwise it is the
    deployment's nodes. Raises UsageError if `managed` is set and the deployment has no managed training.
    """
    has_jobs = ManagedPlace.serves(deployment)
    if launch_options.managed and not has_jobs:
        raise UsageError(f"the topology of '{deployment.name}' has no `managed`; remove --managed")
    by_jobs = has_jobs and (launch_options.managed or not ManagedPlace(deployment).settings.beside)
    kind: type[ManagedPlace | DeploymentPlace] = ManagedPlace if by_jobs else DeploymentPlace
    return kind(deployment, launch_options, others=[each for each in _places(deployment) if not isinstance(each, kind)])


def _places(deployment: Deployment) -> list[BucketPlace]:
    return [kind(deployment) for kind in (ManagedPlace, DeploymentPlace) if kind.serves(deployment)]


def current_trainings(deployment: Deployment) -> list[TrainingHandle]:
    """Return the active runs and, for nodes, also the ended runs that no command has fetched yet.

    Raises ShoalError if a request is unreadable.
    """
    return [each for place in _places(deployment) for each in place.current_trainings()]


def listed_trainings(deployment: Deployment) -> list[TrainingHandle]:
    """Return the same runs as `current_trainings`, but ignore a data bucket that was deleted with its stack."""
    trainings: list[TrainingHandle] = []
    for place in _places(deployment):
        try:
            trainings += place.current_trainings()
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise
    return trainings


def overview(deployment: Deployment, reports: Reports) -> list[RunOverview]:
    """Return the state of each run in `listed_trainings`. Raises ShoalError if a request is unreadable."""
    return [each.status(reports) for each in listed_trainings(deployment)]


def find_training(deployment: Deployment, run: str | None) -> TrainingHandle:
    """Return the run with this name. Without a name, return the first active run or, if none is active, the newest.

    Raises ShoalError if there is no such run.
    """
    wanted = current_trainings(deployment)
    named = [each for each in wanted if run in (None, each.name)]
    if active := next((each for each in named if not each.has_ended), None):
        return active
    ended = [newest for place in _places(deployment) if (newest := place.newest_ended(run))]
    if not (ended or named):
        which = f"the run {run}" if run else "a run"
        known = f"; its runs: {', '.join(each.name for each in wanted)}" if wanted else ""
        raise ShoalError(
            f"the deployment '{deployment.name}' does not have {which}{known}; `shoal fetch {deployment.name}` copies "
            "the results of ended runs"
        )
    return max([*ended, *named], key=lambda each: each.name.rpartition(".")[2])
