"""The GPU nodes of a deployment as a place to train, and the runs on these nodes."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from bootstrap.node.documents import RunRequest
from bootstrap.node.node_documents import NodeStatus, RunEnd
from common import names
from common.errors import ShoalError
from common.progress import reporter
from corpus.reading import s3
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Source
from infra import catalog, cost
from infra.gpu_nodes import START_SECONDS, PlannedNode, group_nodes
from infra.topology_error import TopologyError
from shoal.aws import fleet, objects
from shoal.aws.deployment import Deployment
from shoal.aws.scaling_group import scaling_groups
from shoal.backends.bucket_place import PAUSE_SECONDS, BucketPlace, TrainingHandle
from shoal.backends.deployment_run import DeploymentRun
from shoal.backends.followed import LONGEST_STOP_SECONDS
from shoal.backends.launch import NodeLaunch, needs_prices, requested_runs
from shoal.runs.outlook import Outlook, Spending, outlook
from shoal.runs.run import DEFAULT, LaunchOptions
from shoal.runs.sources.dataset import PreparedDataset
from shoal.runs.sources.source import DataSource, Prepared
from shoal.runs.sources.stream import PreparedStream
from shoal.runs.sources.texts import PreparedTexts
from shoal.runs.state import Reports, RunOverview
from trainer.config import TrainConfig


class DeploymentPlace(BucketPlace):
    """Place on the GPU nodes of a deployment."""

    pause = 1.0
    reads_only_s3 = True

    busy_message = "the nodes of '{name}' execute {run}; leave out --managed"

    def __init__(
        self, deployment: Deployment, launch_options: LaunchOptions = DEFAULT, *, others: Sequence[BucketPlace] = ()
    ) -> None:
        super().__init__(deployment, launch_options, others=others)
        self.shares = deployment.share is not None

    def current_trainings(self) -> list[TrainingHandle]:
        runs = requested_runs(self.deployment)
        request = runs.read()
        return [] if request is None else [_NodesTraining(self.deployment, request, runs.end(request))]

    @property
    def readers(self) -> int:
        """Number of readers: one per reader node; without reader nodes, one on the first node that trains."""
        groups = fleet.groups(self.deployment, readers=True)
        return max(1, sum(group.size for group in groups if group.role == "read"))

    def require_readable(self, address: str) -> None:
        """Raise ShoalError if the text is not in S3 or not in the topology's inputs, because nodes cannot read such
        text.
        """
        if not is_s3(address):
            raise ShoalError(
                f"{address} is on this machine, but the nodes of a deployment read text only from S3; upload it, for "
                "example with `aws s3 cp`, to an address in the `inputs` of the topology "
                f"'{self.deployment.topology}', and pass that address"
            )
        self.deployment.require_readable(address)

    @property
    def preprocesses(self) -> bool:
        """True if the deployment has only one node, which also runs the preprocessing jobs."""
        return names.OUTPUT_ON_NODE in self.deployment.outputs

    def upload_inputs(self, sources: tuple[Source, ...], name: str) -> tuple[Source, ...]:
        """Upload the files to a new folder of the raw bucket that no other command uses.

        Returns their new addresses.
        """
        for source in sources:
            if is_s3(source.address):
                self.deployment.require_readable(source.address, names.OUTPUT_RAW_BUCKET)
        raw = s3.S3Path(self.deployment.output(names.OUTPUT_RAW_BUCKET), f"{names.RAW}{name}/")
        return objects.upload_reviews(self._s3, sources, raw)

    def require_common_folder(self) -> None:
        """Raise ShoalError if the deployment has several nodes but no shared file system for the parts of a stream."""
        nodes = sum(group.size for group in fleet.groups(self.deployment))
        if nodes > 1 and self.deployment.share is None:
            raise ShoalError(
                f"the {nodes} nodes of the deployment '{self.name}' need a shared file system for the parts of the "
                f"stream; write `share: nfs` or `share: efs` in the topology '{self.deployment.topology}', "
                "and deploy again"
            )

    def prepare(self, source: DataSource, config: TrainConfig) -> DeploymentRun:
        prepared = source.prepare(self, config)
        self._require_readable(config)
        self._require_paid(self.nodes(readers=prepared.readers > 0))
        launch = NodeLaunch(self.deployment, self._run_name(config))
        if config.resume:
            prepared = prepared.resumed(launch.request_before)
        return DeploymentRun(launch, prepared, config, launch_options=self.launch_options)

    def _require_paid(self, nodes: Sequence[PlannedNode]) -> None:
        """Raise ShoalError if starting the nodes alone would exhaust the cost limit."""
        if (most := self.launch_options.max_dollars) is None:
            return
        if (hourly := self.hourly(nodes)) is None:
            raise ShoalError(needs_prices(str(self.deployment.session.region_name)))
        if (starts := START_SECONDS / 3600 * hourly) >= most:
            raise ShoalError(
                f"{self.deployment.limit_of(most)}, but the start of the nodes alone costs about ${starts:.2f}; set a "
                "higher --max-dollars"
            )

    def nodes(self, *, readers: bool = False) -> list[PlannedNode]:
        """Return the nodes of the groups that train. If `readers` is true, also return the reader nodes.

        Raises ShoalError if the deployment has no nodes.
        """
        groups = scaling_groups(self.deployment, readers=readers)
        group_types = [(each.node_group, each.instance_types) for each in groups]
        return [node for group, types in group_types for node in group_nodes(types, group.size, group.gpus, group.efa)]

    def hourly(self, nodes: Sequence[PlannedNode]) -> float | None:
        """Return the cost of these nodes in dollars per hour, at the prices that `Spending` uses; None if a price is
        unknown.
        """
        try:
            prices = catalog.prices(str(self.deployment.session.region_name))
            return sum(cost.training_node(node.instance_type, prices) for node in nodes)
        except TopologyError:
            return None


class _NodesTraining(TrainingHandle):
    """Run on a deployment's nodes that an earlier command started."""

    def __init__(self, deployment: Deployment, request: RunRequest, end: RunEnd | None) -> None:
        """`end` is the end of the run if it had ended when the request was read, else None."""
        super().__init__(deployment, request.run)
        self._end = end
        self.is_endless = request.stream is not None and request.stream.follow
        self.is_stopping = request.stop
        self._launch = NodeLaunch(deployment, request.run)
        self._launch.follow(request)
        if request.keep:
            self.collecting += " (--keep: when they are idle)"

    @property
    def options(self) -> Mapping[str, tuple[str, ...]]:
        return self._launch.request.options

    @property
    def has_ended(self) -> bool:
        return self._end is not None

    def status(self, reports: Reports) -> RunOverview:
        launch, attempts = self._launch, self._launch.attempts()
        if end := self._end:
            ended = RunOverview(run=self.name, state=end.outcome, error=end.error, attempts=attempts, outlook=None)
            return replace(ended, advice=self.collecting)
        state = "running" if launch.request.ready else "starting"
        return RunOverview(run=self.name, state=state, error="", attempts=attempts, outlook=self._outlook(reports))

    def _outlook(self, reports: Reports) -> Outlook:
        launch, attempts, nodes = self._launch, self._launch.attempts(), fleet.nodes(self.deployment)
        # Nodes that were running before the launch count from the first attempt of the launch.
        ran_before = any(node.launched < launch.requested_at for node in nodes)
        since = launch.first_attempt_at() if ran_before else launch.requested_at
        cost = Spending(region=str(self.deployment.session.region_name), since=since or datetime.now(UTC))
        first = reports.get(attempts[-1].members[0].instance) if attempts else None
        status = first if isinstance(first, NodeStatus) else None
        return outlook(launch.request, attempts, status, nodes if since else (), cost)

    def stop(self) -> tuple[str, str]:
        """Stop the run. Scale its nodes to zero, unless an option keeps them or another run needs them. The nodes can
        still run after the run has ended, if the command that started it was killed.

        Returns the outcome of the run and, if the run failed, the reason.
        """
        launch, groups = self._launch, fleet.groups(self.deployment, readers=True)
        if (end := launch.end()) is not None:
            fleet.scale_to_zero(self.deployment, groups, unless=launch.keeps_nodes)
            return end.outcome, end.error
        reporter().stage("stop")
        if not (launch.is_wanted() and launch.request.ready and any(group.desired for group in groups)):
            launch.requests.write_end(launch.request)
            launch.forget()
        else:
            launch.ask_to_stop()
        deadline = time.monotonic() + LONGEST_STOP_SECONDS
        while (end := launch.end()) is None and time.monotonic() < deadline:
            reporter().tick()
            time.sleep(PAUSE_SECONDS)
        if end is None:
            with suppress(ShoalError):
                launch.forget()
        fleet.scale_to_zero(self.deployment, groups, unless=launch.keeps_nodes)
        if end is None:
            raise ShoalError(
                f"the nodes did not stop in time, so Shoal terminates them; the files of the run are in {launch.folder}"
            )
        return end.outcome, end.error

    def _run(self, config: TrainConfig) -> tuple[DeploymentPlace, DeploymentRun]:
        request = self._launch.request
        prepared: Prepared = PreparedDataset(str(request.dataset))
        if request.texts is not None:
            prepared = PreparedTexts(request.texts, tuple(each.address for each in request.texts.sources))
        elif request.stream is not None:
            prepared = PreparedStream(request.stream)
        return DeploymentPlace(self.deployment), DeploymentRun(self._launch, prepared, config)
