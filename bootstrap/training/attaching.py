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
from bootstrap.training.places.launch import NodeLaunch, requested_runs
from bootstrap.training.places.nodes_followed import LONGEST_STOP_SECONDS
from bootstrap.training.places.run_launch import Wishes
from bootstrap.training.sources.dataset import PreparedDataset
from bootstrap.training.sources.source import Prepared
from bootstrap.training.sources.stream import PreparedStream
from bootstrap.training.sources.texts import PreparedTexts
from bootstrap.training.spending import Spending
from bootstrap.training.train import carry_out
from common.display import printable
from common.errors import ShoalError
from infra import topology
from trainer.command_line import from_words
from trainer.config import TrainConfig

_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class WantedRun:
    """A run that is wanted of a deployment's nodes."""

    run: str
    state: str
    """`starting` before its nodes have booted, `waiting` for the runs before it, `running`, or how it has ended."""
    error: str
    attempts: list[Attempt]
    """The attempts at its latest launch."""
    outlook: Outlook | None
    """None of a run that has ended, or waits."""


def is_of_jobs(deployment: Deployment, run: str | None) -> bool:
    """Whether a run is one of the jobs, by its name; without one, where there is a cluster and no training."""
    if run is not None:
        return FINGERPRINT.fullmatch(run) is not None
    return topology.OUTPUT_CLUSTER_ID in deployment.outputs and not requested_runs(deployment).read()


def overview(deployment: Deployment, told: Mapping[str, NodeStatus | str]) -> list[WantedRun]:
    """The runs that are wanted of a deployment's nodes, in their order, `told` having what each node tells, or why that
    cannot be read. Raises ShoalError where they cannot be read."""
    found: list[WantedRun] = []
    for request, end in requested_runs(deployment).with_ends():
        launch = NodeLaunch(deployment, request.run)
        launch.follow(request)
        state = end.outcome if end else "running" if request.ready else "starting"
        if end is None and any(each.state in ("starting", "running") for each in found):
            state = "waiting"
        error = printable(end.error) if end else ""
        expected = _outlook(launch, told) if state in ("starting", "running") else None
        found.append(WantedRun(run=request.run, state=state, error=error, attempts=launch.attempts(), outlook=expected))
    return found


def _outlook(launch: NodeLaunch, told: Mapping[str, NodeStatus | str]) -> Outlook:
    attempts, nodes = launch.attempts(), fleet.nodes(launch.deployment)
    # Nodes that ran before it did something else until it had its turn.
    ran_before = any(node.launched < launch.began for node in nodes)
    since = launch.first_attempt_at() if ran_before else launch.began
    cost = Spending(region=str(launch.deployment.session.region_name), since=since or datetime.now(UTC))
    return outlook(launch.request, attempts, first_told(attempts, told), nodes if since else (), cost)


def attach(deployment: Deployment, request: RunRequest, output: Path, bars: Bars) -> tuple[dict[str, Any], TrainConfig]:
    """Follow a run that is `chosen` to its results in `output`; returns what `train` does, and the configuration.

    An interrupt ends this command alone. Raises TrainingError where it would replace a finished model.
    """
    place = OnDeployment(deployment, Wishes(leave=True))
    places = {"data": Path("dataset"), "output": output, "cache": output}
    config = from_words(request.options, endless=request.stream is not None and request.stream.endless, **places)
    place.finished_before(replace(config, resume=False, force=False))
    launch = NodeLaunch(deployment, request.run)
    launch.follow(request)
    run = DeploymentRun(launch, _prepared(request), config, wishes=place.wishes)
    return carry_out(place, run, bars), config


def stop(deployment: Deployment, run: str | None, bars: Bars) -> tuple[str, RunEnd]:
    """Stop a run, by default the first that has not ended, with a checkpoint, and scale its nodes to zero unless they
    are to stay or are wanted for another run; returns the run's name, and how it ended.

    Raises ShoalError where no such run is wanted of the nodes, or where they do not stop.
    """
    request = chosen(deployment, run)
    launch, groups = NodeLaunch(deployment, request.run), fleet.groups(deployment, readers=True)
    launch.follow(request)
    if (end := launch.end()) is not None:
        return request.run, end
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
    return request.run, end


def chosen(deployment: Deployment, run: str | None) -> RunRequest:
    """The run of this name, or else the first that has not ended, or else the last. Raises ShoalError where no such run
    is wanted of the nodes."""
    wanted = requested_runs(deployment).with_ends()
    named = [each for each in wanted if run in (None, each[0].run)]
    if not named:
        which = f"the run {printable(run)}" if run else "a run"
        known = f"; there are: {', '.join(each.run for each, _ in wanted)}" if wanted else ""
        raise ShoalError(
            f"{which} is not wanted of the nodes of '{deployment.name}'{known}; `shoal fetch {deployment.name}` copies "
            "the results of those that have ended"
        )
    return next((request for request, end in named if end is None), named[-1][0])


def _prepared(request: RunRequest) -> Prepared:
    """What a run learns from."""
    if request.texts is not None:
        return PreparedTexts(request.texts, tuple(each.address for each in request.texts.sources))
    if request.stream is not None:
        return PreparedStream(request.stream)
    return PreparedDataset(str(request.dataset))
