"""Trainings on a deployment that other commands have begun: listed, followed to their results from any machine, or
stopped."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bootstrap.agent.documents import FINGERPRINT, RunRequest
from bootstrap.agent.node_documents import Attempt, NodeStatus, RunEnd
from bootstrap.aws.deployment import Deployment
from bootstrap.nodes import fleet
from bootstrap.progress import Bars
from bootstrap.training.outlook import Outlook, first_told, outlook
from bootstrap.training.places.deployment import OnDeployment
from bootstrap.training.places.deployment_run import DeploymentRun
from bootstrap.training.places.followed import LONGEST_STOP_SECONDS
from bootstrap.training.places.launch import NodeLaunch, Wishes, requested_runs
from bootstrap.training.places.managed import ManagedRun, OnManaged
from bootstrap.training.places.managed_job import Job, is_managed, jobs
from bootstrap.training.places.place import Place, Run
from bootstrap.training.sources.dataset import PreparedDataset
from bootstrap.training.sources.source import Prepared
from bootstrap.training.sources.stream import PreparedStream
from bootstrap.training.sources.texts import PreparedTexts
from bootstrap.training.spending import Spending
from bootstrap.training.train import carry_out
from common.errors import ShoalError
from infra import topology
from trainer.command_line import from_words
from trainer.config import TrainConfig

_PAUSE_SECONDS = 1.0
_ON_NODES = ("starting", "running")


@dataclass(frozen=True, kw_only=True)
class WantedRun:
    run: str
    state: str
    """`starting` before its nodes have booted, `waiting` for the runs before it, `running`, or how it has ended; of a
    training job what SageMaker calls it."""
    error: str
    attempts: list[Attempt]
    """The attempts at its latest launch."""
    outlook: Outlook | None
    """None of a run that has ended, or waits."""


def is_of_jobs(deployment: Deployment, run: str | None) -> bool:
    """Whether a run is one of the jobs, by its name; without one, where there is a cluster and no training."""
    if run is not None:
        return FINGERPRINT.fullmatch(run) is not None
    if topology.OUTPUT_CLUSTER_ID not in deployment.outputs or requested_runs(deployment).read():
        return False
    return not (is_managed(deployment) and any(jobs(deployment, at_work=True)))


def overview(deployment: Deployment, told: Mapping[str, NodeStatus | str]) -> list[WantedRun]:
    """The runs that are wanted of a deployment's nodes, in their order, `told` having what each node tells, or why that
    cannot be read; and its training jobs that have not ended. Raises ShoalError where they cannot be read."""
    found: list[WantedRun] = []
    for job in jobs(deployment, at_work=True) if is_managed(deployment) else ():
        spent = Outlook(dollars=job.dollars(), dollars_at_least=job.dollars())
        found.append(WantedRun(run=job.run, state=job.phase, error="", attempts=[], outlook=spent))
    for request, end in requested_runs(deployment).with_ends():
        launch = NodeLaunch(deployment, request.run)
        launch.follow(request)
        state = end.outcome if end else "running" if request.ready else "starting"
        if end is None and any(each.state in _ON_NODES for each in found):
            state = "waiting"
        error = end.error if end else ""
        expected = _outlook(launch, told) if state in _ON_NODES else None
        found.append(WantedRun(run=request.run, state=state, error=error, attempts=launch.attempts(), outlook=expected))
    return found


def _outlook(launch: NodeLaunch, told: Mapping[str, NodeStatus | str]) -> Outlook:
    attempts, nodes = launch.attempts(), fleet.nodes(launch.deployment)
    # Nodes that ran before it did something else until it had its turn.
    ran_before = any(node.launched < launch.began for node in nodes)
    since = launch.first_attempt_at() if ran_before else launch.began
    cost = Spending(region=str(launch.deployment.session.region_name), since=since or datetime.now(UTC))
    return outlook(launch.request, attempts, first_told(attempts, told), nodes if since else (), cost)


def attach(
    deployment: Deployment, wanted: RunRequest | Job, output: Path, bars: Bars
) -> tuple[dict[str, Any], TrainConfig]:
    """Follow a run that is `chosen` to its results in `output`; returns what `train` does, and the configuration.

    An interrupt ends this command alone. Raises TrainingError where it would replace a finished model.
    """
    endless = isinstance(wanted, RunRequest) and wanted.stream is not None and wanted.stream.endless
    config = from_words(wanted.options, endless=endless, data=Path("dataset"), output=output, cache=output)
    wishes = Wishes(leave=True)
    place: Place
    run: Run
    if isinstance(wanted, Job):
        place = OnManaged(deployment, wishes)
        run = ManagedRun(place, PreparedDataset(wanted.dataset), config, wanted.run, wanted)
    else:
        place, launch = OnDeployment(deployment, wishes), NodeLaunch(deployment, wanted.run)
        launch.follow(wanted)
        run = DeploymentRun(launch, _prepared(wanted), config, wishes=wishes)
    place.finished_before(replace(config, resume=False, force=False))
    return carry_out(place, run, bars), config


def stop(deployment: Deployment, run: str | None, bars: Bars) -> tuple[str, str, str]:
    """Stop a run, by default the first that has not ended, with a checkpoint, and scale its nodes to zero unless they
    are to stay or are wanted for another run; returns the run's name, how it ended, and why it failed.

    Raises ShoalError where no such run is wanted of the nodes, or where they do not stop.
    """
    wanted = chosen(deployment, run)
    if isinstance(wanted, Job):
        return _stop_job(wanted, bars)
    end = _stop_on_nodes(deployment, wanted, bars)
    return wanted.run, end.outcome, end.error


def _stop_job(job: Job, bars: Bars) -> tuple[str, str, str]:
    bars.stage("stop", 0)
    job.stop()
    while not (job := job.again()).has_ended:
        bars.tick()
        time.sleep(_PAUSE_SECONDS)
    return job.run, job.outcome, job.why


def _stop_on_nodes(deployment: Deployment, request: RunRequest, bars: Bars) -> RunEnd:
    launch, groups = NodeLaunch(deployment, request.run), fleet.groups(deployment, readers=True)
    launch.follow(request)
    if (end := launch.end()) is not None:
        return end
    bars.stage("stop", 0)
    if launch.before() or not request.ready or not any(group.desired for group in groups):
        launch.end_by_hand()
        launch.forget()
    else:
        launch.ask_to_stop()
    deadline = time.monotonic() + LONGEST_STOP_SECONDS
    while (end := launch.end()) is None and time.monotonic() < deadline:
        bars.tick()
        time.sleep(_PAUSE_SECONDS)
    if end is None:
        with suppress(ShoalError):
            launch.forget()
    fleet.scale_to_zero(deployment, groups, unless=launch.keeps_nodes)
    if end is None:
        raise ShoalError(f"the nodes did not stop in time, so they are ended; what they wrote is in {launch.folder}")
    return end


def chosen(deployment: Deployment, run: str | None) -> RunRequest | Job:
    """The run of this name, or else the first that has not ended, or else the last. Raises ShoalError where no such run
    is wanted of the nodes, and none is a training job."""
    managed = is_managed(deployment)
    if managed and (job := next(jobs(deployment, run, at_work=True), None)):
        return job
    wanted = requested_runs(deployment).with_ends()
    named = [each for each in wanted if run in (None, each[0].run)]
    ended = next(jobs(deployment, run), None) if managed and all(end is not None for _, end in named) else None
    if ended and not any(_began(ended.run) < _began(request.run) for request, _ in named):
        return ended
    if not named:
        which = f"the run {run}" if run else "a run"
        known = f"; there are: {', '.join(each.run for each, _ in wanted)}" if wanted else ""
        raise ShoalError(
            f"{which} is not wanted of the nodes of '{deployment.name}'{known}; `shoal fetch {deployment.name}` copies "
            "the results of those that have ended"
        )
    return next((request for request, end in named if end is None), named[-1][0])


def _prepared(request: RunRequest) -> Prepared:
    if request.texts is not None:
        return PreparedTexts(request.texts, tuple(each.address for each in request.texts.sources))
    if request.stream is not None:
        return PreparedStream(request.stream)
    return PreparedDataset(str(request.dataset))


def _began(run: str) -> str:
    return run.rpartition(".")[2]
