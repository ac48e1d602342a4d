"""The places where a deployment trains, and the trainings there that other commands have begun."""

from botocore.exceptions import ClientError

from bootstrap.aws.deployment import Deployment
from bootstrap.training.places.bucket_place import BegunTraining, InBucket, Reports, WantedRun
from bootstrap.training.places.deployment import OnDeployment
from bootstrap.training.places.launch import DEFAULT, LaunchOptions
from bootstrap.training.places.managed import OnManaged
from common.errors import ShoalError, UsageError


def place_on(deployment: Deployment, wishes: LaunchOptions = DEFAULT) -> InBucket:
    """Where a deployment trains: on its nodes, or where it has none or they are not wanted by jobs. Raises UsageError
    where jobs are wanted of a deployment that has none."""
    has_jobs = OnManaged.serves(deployment)
    if wishes.managed and not has_jobs:
        raise UsageError(f"the topology of '{deployment.name}' has no `managed`; leave out --managed")
    by_jobs = has_jobs and (wishes.managed or not OnManaged(deployment).settings.beside)
    kind: type[OnManaged | OnDeployment] = OnManaged if by_jobs else OnDeployment
    return kind(deployment, wishes, others=[each for each in _places(deployment) if not isinstance(each, kind)])


def _places(deployment: Deployment) -> list[InBucket]:
    return [kind(deployment) for kind in (OnManaged, OnDeployment) if kind.serves(deployment)]


def wanted_trainings(deployment: Deployment) -> list[BegunTraining]:
    """Those that run, and those on nodes of which no command has copied the results. Raises ShoalError where they
    cannot be read."""
    return [each for place in _places(deployment) for each in place.wanted()]


def listed_trainings(deployment: Deployment) -> list[BegunTraining]:
    """The same, without those whose requests were in a bucket that was deleted with its stack."""
    found: list[BegunTraining] = []
    for place in _places(deployment):
        try:
            found += place.wanted()
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise
    return found


def overview(deployment: Deployment, reports: Reports) -> list[WantedRun]:
    """The state of each of those. Raises ShoalError where they cannot be read."""
    return [each.status(reports) for each in listed_trainings(deployment)]


def find_training(deployment: Deployment, run: str | None) -> BegunTraining:
    """The training of this name, or else the first that has not ended, or else the newest by its name. Raises
    ShoalError where there is none."""
    wanted = wanted_trainings(deployment)
    named = [each for each in wanted if run in (None, each.name)]
    if at_work := next((each for each in named if not each.has_ended), None):
        return at_work
    ended = [found for place in _places(deployment) if (found := place.newest_ended(run))]
    if not (ended or named):
        which = f"the run {run}" if run else "a run"
        known = f"; there are: {', '.join(each.name for each in wanted)}" if wanted else ""
        raise ShoalError(
            f"{which} is not wanted of the nodes of '{deployment.name}'{known}; `shoal fetch {deployment.name}` copies "
            "the results of those that have ended"
        )
    return max([*ended, *named], key=lambda each: each.name.rpartition(".")[2])
