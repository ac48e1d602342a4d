"""Trainings on a deployment that other commands have begun: listed, followed to their results from any machine, or
stopped."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bootstrap.agent.documents import RunRequest
from bootstrap.agent.node_documents import Attempt, NodeStatus
from bootstrap.aws.deployment import Deployment
from bootstrap.nodes import fleet
from bootstrap.progress import Bars
from bootstrap.training.outlook import Outlook, first_told, outlook
from bootstrap.training.places.deployment import OnDeployment
from bootstrap.training.places.deployment_run import DeploymentRun
from bootstrap.training.places.followed import LONGEST_STOP_SECONDS
from bootstrap.training.places.launch import LaunchOptions, NodeLaunch, requested_runs
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


class BegunTraining(ABC):
    """A training on a deployment that some command has begun."""

    continued = "the command that began it, with --resume"
    """What continues it after a stop."""

    def __init__(self, deployment: Deployment, name: str, options: Mapping[str, tuple[str, ...]]) -> None:
        self.deployment, self.name, self._options = deployment, name, options
        self.results = f"shoal fetch {deployment.name} --run {name} --output results"
        """The command that copies its results."""

    @abstractmethod
    def stop(self, bars: Bars) -> tuple[str, str]:
        """Stop it with a checkpoint; returns how it ended, and why it failed. Raises ShoalError where it does not
        stop."""

    def follow(self, output: Path, bars: Bars) -> dict[str, Any]:
        """Follow it to its results in `output`; returns what `train` does.

        An interrupt ends this command alone. Raises TrainingError where it would replace a finished model.
        """
        config = from_words(self._options, endless=self._is_endless, data=Path("dataset"), output=output, cache=output)
        place, run = self._run(config, LaunchOptions(leave=True))
        place.finished_before(replace(config, resume=False, force=False))
        return carry_out(place, run, bars)

    _is_endless = False

    @abstractmethod
    def _run(self, config: TrainConfig, wishes: LaunchOptions) -> tuple[Place, Run]: ...


class _JobTraining(BegunTraining):
    def __init__(self, job: Job) -> None:
        super().__init__(job.deployment, job.run, job.options)
        self._job = job

    def stop(self, bars: Bars) -> tuple[str, str]:
        bars.stage("stop", 0)
        job = self._job
        job.stop()
        while not (job := job.again()).has_ended:
            bars.tick()
            time.sleep(_PAUSE_SECONDS)
        return job.outcome, job.why

    def _run(self, config: TrainConfig, wishes: LaunchOptions) -> tuple[Place, Run]:
        place = OnManaged(self.deployment, wishes)
        return place, ManagedRun(place, PreparedDataset(self._job.dataset), config, self.name, self._job)


class _NodesTraining(BegunTraining):
    def __init__(self, deployment: Deployment, request: RunRequest) -> None:
        super().__init__(deployment, request.run, request.options)
        self._is_endless = request.stream is not None and request.stream.follow
        self._launch = NodeLaunch(deployment, request.run)
        self._launch.follow(request)

    def stop(self, bars: Bars) -> tuple[str, str]:
        """Also scale its nodes to zero unless they are to stay or are wanted for another run."""
        launch, groups = self._launch, fleet.groups(self.deployment, readers=True)
        if (end := launch.end()) is not None:
            return end.outcome, end.error
        bars.stage("stop", 0)
        if launch.before() or not launch.request.ready or not any(group.desired for group in groups):
            launch.wanted.end_by_hand(launch.request)
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
        fleet.scale_to_zero(self.deployment, groups, unless=launch.keeps_nodes)
        if end is None:
            raise ShoalError(
                f"the nodes did not stop in time, so they are ended; what they wrote is in {launch.folder}"
            )
        return end.outcome, end.error

    def _run(self, config: TrainConfig, wishes: LaunchOptions) -> tuple[Place, Run]:
        request = self._launch.request
        learnt: Prepared = PreparedDataset(str(request.dataset))
        if request.texts is not None:
            learnt = PreparedTexts(request.texts, tuple(each.address for each in request.texts.sources))
        elif request.stream is not None:
            learnt = PreparedStream(request.stream)
        return OnDeployment(self.deployment, wishes), DeploymentRun(self._launch, learnt, config, wishes=wishes)


def has_training(deployment: Deployment) -> bool:
    """Whether a training is wanted of a deployment's nodes, or one of its jobs of SageMaker runs."""
    jobs_of = jobs(deployment, at_work=True) if is_managed(deployment) else ()
    return bool(requested_runs(deployment).read()) or any(jobs_of)


def find_training(deployment: Deployment, run: str | None) -> BegunTraining:
    """The training of this name, or else the first that has not ended, or else the last. Raises ShoalError where no
    such run is wanted of the nodes, and none is a training job."""
    managed = is_managed(deployment)
    if managed and (job := next(jobs(deployment, run, at_work=True), None)):
        return _JobTraining(job)
    wanted = requested_runs(deployment).with_ends()
    named = [each for each in wanted if run in (None, each[0].run)]
    ended = next(jobs(deployment, run), None) if managed and all(end is not None for _, end in named) else None
    if ended and not any(_began(ended.run) < _began(request.run) for request, _ in named):
        return _JobTraining(ended)
    if not named:
        which = f"the run {run}" if run else "a run"
        known = f"; there are: {', '.join(each.run for each, _ in wanted)}" if wanted else ""
        raise ShoalError(
            f"{which} is not wanted of the nodes of '{deployment.name}'{known}; `shoal fetch {deployment.name}` copies "
            "the results of those that have ended"
        )
    return _NodesTraining(deployment, next((request for request, end in named if end is None), named[-1][0]))


def _began(run: str) -> str:
    return run.rpartition(".")[2]
