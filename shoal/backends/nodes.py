"""Backend on a deployment's GPU nodes: claims and scales up the nodes, and scales them to zero after the run."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, get_args

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.node.documents import RunRequest
from bootstrap.node.node_documents import NodeStatus
from bootstrap.node.store import Store
from common import names
from common.display import plural
from common.errors import DataError, ShoalError
from common.names import RUNS, SETS
from common.progress import reporter
from corpus.reading.s3 import S3Path, head_or_none
from corpus.stream.lines import describe_malformed
from corpus.stream.progress import Status, sum_of
from infra import parts
from shoal.aws import fetched, fleet
from shoal.aws.deployment import Deployment
from shoal.aws.retry import Abandoned, retrying
from shoal.aws.scale_up import READY_SECONDS
from shoal.backends.agents import AgentBackend
from shoal.backends.deployment_data import NodeData, upload_files, with_uploaded_files
from shoal.backends.deployment_runs import (
    limited,
    record_copy,
    requested_runs,
    stop_reason,
    with_name,
)
from shoal.backends.node_fleet import NodeFleet
from shoal.runs.backend import Hardware
from shoal.runs.files import Copied, RunFiles
from shoal.runs.outlook import Outlook, Spending, outlook
from shoal.runs.run import NO_LIMITS, Limits, Run
from shoal.runs.sources.source import DataSource
from shoal.runs.sources.stream import PreparedStream
from shoal.runs.state import Reports, RunState, StopReason
from shoal.runs.store import Launch
from trainer.config import TrainConfig

_ROLES = get_args(parts.Role)
_READING_SECONDS = 5.0
"""Seconds between two readings of the readers' progress."""


class NodesBackend(AgentBackend):
    """Backend on the GPU nodes of a deployment."""

    when_silent = "if its deployment has an earlier version of Shoal, deploy it again"

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(requested_runs(deployment))
        self.deployment, self.name, self.data = deployment, deployment.name, NodeData(deployment)
        self.options = {"deployment": (deployment.name,)}
        self.fleet = NodeFleet(deployment)
        self._s3 = deployment.session.client("s3")
        self._reading, self._read_at = Status(), 0.0
        """Progress of the readers, and the monotonic time at which it was read."""

    def new_launch(self, name: str) -> Launch:
        return Launch(self.requests, name, require_free=partial(_require_free, self.deployment))

    def prepare(self, source: DataSource, config: TrainConfig, limits: Limits = NO_LIMITS) -> Run:
        """Prepare a run, and read the nodes that it will use.

        Raises ShoalError if starting the nodes alone would exhaust the cost limit.
        """
        run = super().prepare(source, config, limited(limits, self.deployment))
        self.fleet.require_paid(run.limits.max_dollars, readers=run.data.readers > 0)
        run = with_name(run, self.deployment, on_nodes=True)
        if run.resumes and isinstance(run.data, PreparedStream):
            run = replace(run, data=run.data.resumed(self.requests.earlier(run.name)))
        return run

    def start(self, run: Run) -> Run:
        """Claim the nodes, scale them up, and tell them to start the run.

        An ended run of an equal command starts no nodes. Nodes that run already are used.
        """
        requested_at, reads = datetime.now(UTC), run.data.readers > 0
        launch = self._launch = self.new_launch(run.name)
        self._claim(run, launch)
        self.fleet.count_cost(names.start_time(launch.run) if launch.already_started else requested_at)
        if launch.end() is None:
            are_running = launch.already_started and launch.request.ready and self.fleet.is_wanted
            nodes = self.fleet.start(readers=reads, are_running=are_running)
            if not launch.request.ready:
                launch.start(nodes, until=self.fleet.stop_time(launch.request.max_dollars))
        return replace(run, name=launch.run)

    def _claim(self, run: Run, launch: Launch) -> None:
        """Claim the nodes for a run, and upload the files of this machine that its options name.

        An equal command that claimed the nodes earlier has uploaded them.
        """
        groups = self.fleet.groups(readers=run.data.readers > 0)
        counts = [sum(each.size for each in groups if each.role == role) for role in _ROLES]
        if run.limits.min_nodes > counts[0]:
            trains = plural(counts[0], "node")
            raise ShoalError(f"--min-nodes is {run.limits.min_nodes}, but '{self.name}' trains on {trains}")
        bucket = self.deployment.output(names.OUTPUT_DATA_BUCKET)
        folder = S3Path(bucket, f"{RUNS}{launch.run}/{SETS}")
        claimed = launch.claim(
            run,
            trainers=counts[0],
            readers=counts[1],
            share=self.deployment.share,
            options=with_uploaded_files(run.options, folder),
        )
        if claimed:  # record the copy of the request as fetched, because nobody needs to fetch it
            upload_files(self._s3, run.options, folder)
            key = names.request_copy_key(launch.run)
            tag = self.requests.store.list(key)[key].tag
            fetched.record(self._s3, bucket, {launch.run: {names.REQUEST_NAME: tag}})

    def state(self, name: str) -> RunState:
        self.fleet.count_cost(names.start_time(name))
        state, launch = super().state(name), self.launch(name)
        stream, details = launch.request.stream, dict[str, Any]()
        reading, notes = None, list(state.notes)
        if stream is not None:
            if state.has_ended or time.monotonic() - self._read_at >= _READING_SECONDS:
                self._reading = read_so_far(self.requests.store, name, stream.readers)
                self._read_at = time.monotonic()
            reading, details["read"] = self._reading, asdict(self._reading)
            if state.has_ended and reading.malformed:
                notes.append(f"{describe_malformed(reading.malformed, reading.lines)}; see reader-N.log")
        if launch.request.keep:
            details["kept"] = True
        return replace(
            state,
            find_stop_reason=state.find_stop_reason and partial(_stop_reason, self.deployment, launch.request),
            reading=reading,
            notes=notes,
            dollars=self.fleet.spending.so_far(),
            machines=self.fleet.machines,
            details=details,
        )

    def look_at_nodes(self) -> None:
        self.fleet.require_running()

    def stop(self, name: str, *, at_once: bool = False) -> None:
        """Request a stop, or scale the nodes of an ended run to zero.

        Nodes remain if an option keeps them, or if another run needs them. While AWS does not answer, the nodes do not
        receive the request.
        """
        if at_once:
            self._withdraw()
            return
        launch = self.launch(name)
        if retrying.unanswered and not launch.request.stop:
            reporter().note(
                "waiting for AWS to accept the request to stop the ranks. A second Ctrl-C ends this command without "
                f"the request: the run then continues; to copy its results: shoal fetch {self.name} --run {name} "
                "--output DIR"
            )
        if launch.end() is not None:
            self.fleet.scale_to_zero(launch.keeps_nodes)
        elif not launch.request.stop:
            launch.ask_to_stop()

    def end_without_nodes(self, name: str) -> None:
        """End a run that no node executes or will execute, because its command was killed."""
        launch = self.launch(name)
        if launch.end() is None and not (launch.is_wanted() and launch.request.ready and self.fleet.is_wanted):
            self.requests.write_end(launch.request)
            launch.forget()

    def _withdraw(self) -> None:
        """Scale the nodes to zero if they are this run's, and remove the request."""
        if (launch := self._launch) is None or not launch.is_claimed:
            return
        try:
            if self.fleet.is_used or launch.already_started:
                self.fleet.scale_to_zero(launch.keeps_nodes)
        except Abandoned:
            raise
        except BaseException:
            with suppress(BotoCoreError, ClientError, ShoalError):
                launch.forget()
            raise
        launch.forget()

    @property
    def when_abandoned(self) -> Sequence[str]:  # type: ignore[override]
        return fleet.running_nodes_warning(self.fleet.all_groups)

    def files(self, name: str) -> RunFiles:
        """Return the files of a run. After they were copied, this is recorded in the bucket, too."""
        files = super().files(name)

        def on_copied(copied: Copied) -> None:
            record_copy(self.deployment, name, copied)
            files.on_copied(copied)

        return replace(files, on_copied=on_copied)

    def current_runs(self) -> list[str]:
        """Return the name of the run with the current request, or nothing.

        Raises ShoalError if the request is unreadable.
        """
        if (request := self.requests.read()) is None:
            return []
        self._launch = self.new_launch(request.run)
        self._launch.follow(request)
        return [request.run]

    def hardware(self, run: Run) -> Hardware:
        return self.fleet.hardware(readers=run.data.readers > 0)


def _stop_reason(deployment: Deployment, request: RunRequest) -> StopReason:
    """Return why a run was stopped: by its cost limit, the guard, or a user."""
    if request.max_dollars is not None and not request.stop and request.at(time.time()).stop:
        return StopReason(f"it would have cost more than ${request.max_dollars:g}")
    return stop_reason(deployment)


def run_outlook(deployment: Deployment, launch: Launch, reports: Reports) -> Outlook:
    """Predict the end and cost of a run. `reports`: the statuses of the deployment's nodes."""
    nodes, requested_at, attempts = fleet.nodes(deployment), names.start_time(launch.run), launch.reports.attempts()
    # Nodes that were running before the launch count from the first attempt of the launch.
    ran_before = any(node.launched < requested_at for node in nodes)
    since = _first_attempt_at(deployment, launch) if ran_before else requested_at
    spending = Spending(region=str(deployment.session.region_name), since=since or datetime.now(UTC))
    first = reports.get(attempts[-1].members[0].instance) if attempts else None
    status = first if isinstance(first, NodeStatus) else None
    return outlook(launch.request, attempts, status, nodes if since else (), spending)


def _first_attempt_at(deployment: Deployment, launch: Launch) -> datetime | None:
    """Return the time of the first attempt according to S3's clock; None before the first attempt."""
    for first in launch.reports.attempts()[:1]:
        place = S3Path(deployment.output(names.OUTPUT_DATA_BUCKET), names.attempt_key(launch.run, first.number))
        head = retrying(partial(head_or_none, deployment.session.client("s3"), place))
        if head is not None:
            return head["LastModified"]
    return None


def _require_free(deployment: Deployment, run: str) -> None:
    """Raise ShoalError if nodes are running, or if another command is possibly starting them."""
    name = deployment.name
    place = S3Path(deployment.output(names.OUTPUT_DATA_BUCKET), names.request_key(name))
    head, just_changed = head_or_none(deployment.session.client("s3"), place), False
    if head is not None:  # another command is possibly starting nodes; both times are S3's
        now = parsedate_to_datetime(head["ResponseMetadata"]["HTTPHeaders"]["date"])
        just_changed = (now - head["LastModified"]).total_seconds() < READY_SECONDS
    if just_changed or any(group.desired for group in fleet.groups(deployment)):
        raise ShoalError(
            f"a training uses the nodes of '{name}': {run}; wait until it ends, or stop it: shoal stop {name} {run}"
        )


def read_so_far(store: Store, run: str, readers: int) -> Status:
    """Return the total progress of a run's readers.

    Invalid progress documents are ignored, because other programs can also write to the run's folder.
    """
    statuses = []
    for reader in range(readers):
        with suppress(DataError):
            document = store.read(f"{RUNS}{run}/reader-{reader}.json")
            statuses += [Status.from_json(document.text)] if document else []
    return sum_of(statuses)
