"""Finds the backends of a deployment, and the training runs that earlier commands started on them."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.node.node_documents import Attempt
from common.errors import ShoalError, UsageError
from common.progress import reporter
from shoal.aws.deployment import Deployment
from shoal.backends.nodes import NodesBackend, run_outlook
from shoal.backends.sagemaker import SageMakerBackend, has_managed_training
from shoal.runs.outlook import Outlook
from shoal.runs.state import Reports, RunState
from shoal.runs.train import attach


@dataclass(frozen=True, kw_only=True)
class StartedTraining:
    """Training run that an earlier command started, and that other commands can follow or stop."""

    name: str
    backend: NodesBackend | SageMakerBackend
    state: RunState
    continued = "the command that started it, with --resume"
    """Way to continue the run after a stop, as part of a sentence."""

    @property
    def results(self) -> str:
        """Command that copies the results."""
        return f"shoal fetch {self.backend.name} --run {self.name} --output results"

    def follow(self, output: Path) -> dict[str, Any]:
        """Follow the run to its end, and copy the results to `output`. Returns and raises the same as `attach`."""
        return attach(self.name, self.backend, output)

    def stop(self) -> tuple[str, str]:
        """Stop the run with a checkpoint, and end what still costs money. Nodes of an ended run can still be running,
        if the command that started it was killed.

        Returns the outcome of the run and, if the run failed, the reason. Raises ShoalError if it does not stop.
        """
        backend, state = self.backend, self.state
        if not state.has_ended:
            reporter().stage("stop")
            state = self._wait_for_end()
        backend.stop(self.name, at_once=not state.has_ended)
        if not state.has_ended:
            raise ShoalError(
                "the nodes did not stop in time, so Shoal terminates them; the files of the run are in "
                f"{backend.files(self.name).address}"
            )
        return state.outcome, state.error

    def _wait_for_end(self) -> RunState:
        """Request a stop, and return the state of the run when it has ended, or when the time limit is over.

        After an error, end what still costs money.
        """
        backend = self.backend
        if isinstance(backend, NodesBackend):
            backend.end_without_nodes(self.name)
        deadline = time.monotonic() + backend.longest_stop
        try:
            if not (state := backend.state(self.name)).has_ended:
                backend.stop(self.name)
            while not state.has_ended and time.monotonic() < deadline:
                reporter().tick()
                time.sleep(backend.pause)
                state = backend.state(self.name)
        except ShoalError:
            backend.stop(self.name, at_once=True)
            raise
        return state


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Overview of a run for `shoal status`."""

    run: str
    state: str
    """The phase of `RunState`."""
    error: str
    attempts: list[Attempt]
    outlook: Outlook | None
    """Prediction for the run; None after the run has ended."""
    advice: str = ""
    """Advice if nodes still run after the run has ended."""


def backend_on(deployment: Deployment, *, managed: bool = False) -> NodesBackend | SageMakerBackend:
    """Return the backend on which a deployment trains.

    The backend is SageMaker if `managed`, or if the deployment has no GPU nodes. Otherwise it is the deployment's
    nodes. Raises UsageError if `managed` and the deployment has no managed training.
    """
    has_jobs = has_managed_training(deployment)
    if managed and not has_jobs:
        raise UsageError(f"the topology of '{deployment.name}' has no `managed`; remove --managed")
    if has_jobs:
        jobs = SageMakerBackend(deployment)
        if managed or not jobs.settings.beside:
            return jobs
    return NodesBackend(deployment)


def _backends(deployment: Deployment) -> list[NodesBackend | SageMakerBackend]:
    jobs = [SageMakerBackend(deployment)] if has_managed_training(deployment) else []
    return [*jobs, NodesBackend(deployment)]


def current_trainings(deployment: Deployment) -> list[StartedTraining]:
    """Return the active runs and, for nodes, also the ended runs that no command has fetched yet.

    Raises ShoalError if a request is unreadable.
    """
    return [training for backend in _backends(deployment) for training in _trainings_on(backend)]


def listed_trainings(deployment: Deployment) -> list[StartedTraining]:
    """Return the same runs as `current_trainings`, but ignore a data bucket that was deleted with its stack."""
    trainings: list[StartedTraining] = []
    for backend in _backends(deployment):
        try:
            trainings += _trainings_on(backend)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise
    return trainings


def _trainings_on(backend: NodesBackend | SageMakerBackend) -> list[StartedTraining]:
    return [StartedTraining(name=name, backend=backend, state=backend.state(name)) for name in backend.current_runs()]


def overview(deployment: Deployment, reports: Reports) -> list[Overview]:
    """Return an overview of each run in `listed_trainings`. `reports`: the statuses of the deployment's nodes.

    Raises ShoalError if a request is unreadable.
    """
    return [_overview(each, reports) for each in listed_trainings(deployment)]


def _overview(training: StartedTraining, reports: Reports) -> Overview:
    backend, name, state, advice = training.backend, training.name, training.state, ""
    expected = None
    if state.has_ended and isinstance(backend, NodesBackend):
        idle = " (--keep: when they are idle)" if state.details.get("kept") else ""
        advice = f"to copy its results and terminate its nodes: shoal attach {backend.name} {name}{idle}"
    elif isinstance(backend, NodesBackend):
        expected = run_outlook(backend.deployment, backend.launch(name), reports)
    elif not state.has_ended:
        expected = Outlook(dollars=state.dollars, dollars_at_least=state.dollars)
    return Overview(
        run=name,
        state=state.phase,
        error=state.error,
        attempts=list(state.attempts),
        outlook=expected,
        advice=advice,
    )


def find_training(deployment: Deployment, run: str | None) -> StartedTraining:
    """Return the run with this name. Without a name, return the first active run or, if none is active, the newest.

    Raises ShoalError if there is no such run.
    """
    wanted = current_trainings(deployment)
    named = [each for each in wanted if run in (None, each.name)]
    if active := next((each for each in named if not each.state.has_ended), None):
        return active
    ended = [
        StartedTraining(name=newest, backend=backend, state=backend.state(newest))
        for backend in _backends(deployment)
        if isinstance(backend, SageMakerBackend) and (newest := backend.newest_ended(run))
    ]
    if not (ended or named):
        which = f"the run {run}" if run else "a run"
        known = f"; its runs: {', '.join(each.name for each in wanted)}" if wanted else ""
        raise ShoalError(
            f"the deployment '{deployment.name}' does not have {which}{known}; `shoal fetch {deployment.name}` copies "
            "the results of ended runs"
        )
    return max([*ended, *named], key=lambda each: each.name.rpartition(".")[2])
