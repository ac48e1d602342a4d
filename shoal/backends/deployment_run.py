"""A run on a deployment's GPU nodes: claims and scales up the nodes, follows their statuses, and scales them to zero.

Use nodes only inside the block of `resources`. Otherwise nodes would keep running after a failure, and cost money.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any, get_args

from bootstrap.node.store import Store
from common.display import plural
from common.errors import DataError, ShoalError
from common.names import RUNS, SETS
from common.progress import reporter
from corpus.reading import s3
from corpus.stream.lines import describe_malformed
from corpus.stream.progress import Status, sum_of
from corpus.text_request import describe_skipped_lines
from infra import parts
from shoal.aws import fleet
from shoal.aws.deployment import Deployment
from shoal.aws.fleet import GpuNode, of_role
from shoal.aws.retry import retrying
from shoal.aws.scale_up import LONGEST_READY_SECONDS, scaled_up
from shoal.backends.bucket_place import upload_files, with_uploaded_files
from shoal.backends.followed import LONGEST_STOP_SECONDS, RESUME_HINT, AgentRun
from shoal.backends.launch import NodeLaunch, needs_prices, options_of
from shoal.backends.place import RunResult
from shoal.runs.outlook import Spending
from shoal.runs.run import DEFAULT, LaunchOptions
from shoal.runs.sources.source import Prepared
from trainer.config import TrainConfig

_ROLES = get_args(parts.Role)
_LOOK_SECONDS = 5.0
"""Seconds between two checks of the readers' progress."""


class DeploymentRun(AgentRun):
    """Run on a deployment's GPU nodes."""

    launch: NodeLaunch
    deployment: Deployment

    def __init__(
        self,
        launch: NodeLaunch,
        prepared: Prepared,
        config: TrainConfig,
        *,
        launch_options: LaunchOptions = DEFAULT,
    ) -> None:
        self.config, self.prepared, self.launch = config, prepared, launch
        self.launch_options, self.deployment, self.store = launch_options, launch.deployment, launch.requests.store
        self._s3 = launch.deployment.session.client("s3")
        self._nodes: Sequence[GpuNode] = ()
        self._spending: Spending | None = None
        self._seen = time.monotonic()
        """Monotonic time at which a node was last seen running."""
        if prepared.readers:
            self.stage = "read the text"

    @contextmanager
    def resources(self) -> Iterator[None]:
        """Keep the nodes running for a block: the nodes that train and, for a stream, the reader nodes.

        If the run has already ended, start no nodes. After the block, scale the nodes to zero.
        """
        launch, deployment, readers = self.launch, self.deployment, self.prepared.readers > 0
        with self._ended_after_errors():
            if not launch.already_started:
                self._claim()
            self._spending = Spending(region=str(deployment.session.region_name), since=launch.requested_at)
            # Only the command that started a run terminates its nodes after an error. Nodes of an ended run can remain.
            if self.attached or launch.end() is not None:
                yield
                fleet.scale_to_zero(deployment, fleet.groups(deployment, readers=True), unless=launch.keeps_nodes)
                return
            running = (
                launch.already_started
                and launch.request.ready
                and any(each.desired for each in fleet.groups(deployment))
            )
            with scaled_up(deployment, readers=readers, start=not running, stays=launch.keeps_nodes) as nodes:
                self._spending.see(nodes)
                self._nodes, self._seen = nodes, time.monotonic()
                yield

    @contextmanager
    def started(self) -> Iterator[None]:
        """Tell the nodes to start the run. A closed terminal or expired credentials detach the command from the run."""
        reporter().stage(*self.prepared.staging)
        if not self.attached:
            self.launch.start([each.instance_id for each in self._nodes], until=self._until())
        with self._detaching():
            yield

    def _until(self) -> float | None:
        """Return the Unix time at which the ranks must stop so that the cost limit also covers their stop.

        Returns None if there is no cost limit. Raises ShoalError if the limit leaves no time for training.
        """
        most, spending = self.launch.request.max_dollars, self._spending
        if most is None or spending is None:
            return None
        spent, hourly = spending.so_far(), spending.hourly()
        if spent is None or not hourly:
            raise ShoalError(needs_prices(str(self.deployment.session.region_name)))
        seconds = (most - spent) / hourly * 3600 - LONGEST_STOP_SECONDS
        if seconds <= 0:
            raise ShoalError(
                f"{self.deployment.limit_of(most)}, but the start of the nodes cost ${spent:.2f}, and the nodes cost "
                f"${hourly:.2f} per hour; set a higher --max-dollars"
            )
        return time.time() + seconds

    def wait_for_data(self) -> None:
        super().wait_for_data()
        for node in list(self.launch.statuses().values())[:1]:
            for sentence in describe_skipped_lines(lines=node.lines, malformed=node.malformed, empty=node.empty):
                reporter().note(sentence)

    def _claim(self) -> None:
        """Claim the nodes.

        Also upload the word sets of this machine, unless an earlier command did so for the same launch.
        """
        launch, launch_options = self.launch, self.launch_options
        groups = fleet.groups(self.deployment, readers=self.prepared.readers > 0)
        counts = [sum(each.size for each in groups if each.role == role) for role in _ROLES]
        if launch_options.min_nodes > counts[0]:
            trains = plural(counts[0], "node")
            raise ShoalError(
                f"--min-nodes is {launch_options.min_nodes}, but '{self.deployment.name}' trains on {trains}"
            )
        folder = s3.S3Path(launch.folder.bucket, f"{launch.folder.key}{SETS}")
        claimed = launch.claim(
            launch_options,
            force=self.config.force,
            trainers=counts[0],
            readers=counts[1],
            share=self.deployment.share,
            options=options_of(with_uploaded_files(self.config, folder)),
            **self.prepared.request(),
        )
        if claimed:
            upload_files(self._s3, self.config, folder)

    def _reading(self) -> Callable[[], Any] | None:
        readers = self.prepared.readers
        return ReadingProgress(self.launch.requests.store, self.launch.run, readers) if readers else None

    def look_at_nodes(self) -> None:
        """Raise ShoalError if no node is left, because otherwise the command would wait forever."""
        name, running = self.deployment.name, retrying(partial(fleet.nodes, self.deployment))
        if self._spending:
            self._spending.see(running)
        if running:
            self._seen = time.monotonic()
        elif not any(group.desired for group in retrying(partial(fleet.groups, self.deployment))):
            if why := self.why_guard_stopped():
                raise ShoalError(f"the guard stopped the nodes of '{name}', because {why}")
            raise ShoalError(f"somebody stopped the nodes of '{name}'{RESUME_HINT}")
        elif time.monotonic() - self._seen > LONGEST_READY_SECONDS:
            raise ShoalError(f"no node of '{name}' is left, and AWS does not start new nodes{RESUME_HINT}")

    def stop(self) -> None:
        """Request a stop. While AWS does not answer, the nodes do not receive the request."""
        if retrying.unanswered:
            reporter().note(
                "waiting for AWS to accept the request to stop the ranks. A second Ctrl-C ends this command without "
                f"the request: the run then continues; to copy its results: shoal fetch {self.deployment.name} --run "
                f"{self.launch.run} --output DIR"
            )
        super().stop()

    def spent(self) -> float | None:
        """Return the cost so far in dollars, computed from the hours of the nodes."""
        return self._spending.so_far() if self._spending else None

    def collect(self, *, stopped: bool) -> RunResult:
        """Copy the results to the output, and add the line counts of the readers to the summary."""
        read: dict[str, Any] = {}
        if self.prepared.readers:
            progress = read_so_far(self.store, self.launch.run, self.prepared.readers)
            if progress.malformed:
                reporter().note(f"{describe_malformed(progress.malformed, progress.lines)}; see reader-N.log")
            read = {"read": asdict(progress)}
        if self.launch.request.keep:
            read["kept"] = True
        if self.prepared.inputs:
            read["inputs"] = list(self.prepared.inputs)
        ended = super().collect(stopped=stopped)
        return replace(ended, details={**ended.details, **read})

    def _machines(self) -> Mapping[str, list[dict[str, Any]]]:
        trains, reads = of_role(self._nodes, "train"), of_role(self._nodes, "read")
        return {
            name: [{**vars(node), "launched": node.launched.isoformat()} for node in nodes]
            for name, nodes in (("nodes", trains), ("readers", reads))
        }

    def why_stopped(self, summary: Mapping[str, Any]) -> str:
        """Return why the run stopped (its cost limit, the guard or a user) and what finishing the run would cost."""
        request = self.launch.request
        why = super().why_stopped(summary)
        if request.max_dollars is not None and not request.stop and request.at(time.time()).stop:
            why = f"it would have cost more than ${request.max_dollars:g}"
        done, spent = summary["rows_seen"], self.spent()
        rows = summary.get("rows", 0) * (self.config.optimisation.epochs or 0)
        more = (
            f"; finishing it would cost about ${spent * (rows - done) / done:.2f} more"
            if spent and rows > done > 0
            else ""
        )
        return f"{why}{more}"


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


class ReadingProgress:
    """Progress of a run's readers, cached for `_LOOK_SECONDS`."""

    def __init__(self, store: Store, run: str, readers: int) -> None:
        self._of = store, run, readers
        self._looked, self._read = -math.inf, Status()

    def __call__(self) -> Status:
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = time.monotonic()
            self._read = read_so_far(*self._of)
        return self._read
