"""A deployment's GPU nodes as a place: what they can read, the datasets and runs in its bucket, and what they cost."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from bootstrap.agent.documents import RunRequest
from bootstrap.agent.node_documents import NodeStatus, RunEnd
from bootstrap.aws import objects
from bootstrap.aws.deployment import Deployment
from bootstrap.nodes import fleet
from bootstrap.nodes.scaling_group import scaling_groups
from bootstrap.progress import Bars
from bootstrap.training.outlook import Outlook, Spending, outlook
from bootstrap.training.places.bucket_place import PAUSE_SECONDS, BegunTraining, InBucket, Reports, WantedRun
from bootstrap.training.places.deployment_run import DeploymentRun
from bootstrap.training.places.followed import LONGEST_STOP_SECONDS
from bootstrap.training.places.launch import DEFAULT, LaunchOptions, NodeLaunch, needs_prices, requested_runs
from bootstrap.training.sources.dataset import PreparedDataset
from bootstrap.training.sources.source import Prepared, Source
from bootstrap.training.sources.stream import PreparedStream
from bootstrap.training.sources.texts import PreparedTexts
from common.errors import ShoalError
from corpus.reading import s3
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Source as FileSource
from experiments.forecast import NODES_START, Node, group_nodes
from infra import catalog, cost, topology
from infra.topology_error import TopologyError
from trainer.config import TrainConfig


class OnDeployment(InBucket):
    pause = 1.0
    goes_on = (
        "once all nodes have booted they go on without them and end by themselves, but nobody here follows the "
        "training; renew them, and follow it by"
    )
    reads_s3_alone = True

    elsewhere = "the nodes of '{name}' do {run}; leave out --managed"

    def __init__(
        self, deployment: Deployment, wishes: LaunchOptions = DEFAULT, *, others: Sequence[InBucket] = ()
    ) -> None:
        super().__init__(deployment, wishes, others=others)
        self.shares = deployment.share is not None

    def wanted(self) -> list[BegunTraining]:
        runs = requested_runs(self.deployment)
        request = runs.read()
        return [] if request is None else [_NodesTraining(self.deployment, request, runs.end(request))]

    @property
    def readers(self) -> int:
        """One on each node that reads, or else on the first that trains."""
        groups = fleet.groups(self.deployment, readers=True)
        return max(1, sum(group.size for group in groups if group.role == "read"))

    def require_reads(self, address: str) -> None:
        """Nodes reach S3 alone, and of that what the topology names as its inputs."""
        if not is_s3(address):
            raise ShoalError(
                f"{address} is on this machine, and the nodes of a deployment read text from S3 alone; upload it, such "
                "as by `aws s3 cp`, to an address within the `inputs` of the topology "
                f"'{self.deployment.topology}', and give that"
            )
        self.deployment.require_readable(address)

    @property
    def preprocesses(self) -> bool:
        """Whether its one node does all of the work."""
        return topology.OUTPUT_ON_NODE in self.deployment.outputs

    def uploaded(self, sources: tuple[FileSource, ...], name: str, bars: Bars) -> tuple[FileSource, ...]:
        """Into a folder of the raw bucket: a run that begins later must not find the files of another command there."""
        for source in sources:
            if is_s3(source.address):
                self.deployment.require_readable(source.address, topology.OUTPUT_RAW_BUCKET)
        raw = s3.S3Path(self.deployment.output(topology.OUTPUT_RAW_BUCKET), f"{objects.RAW_PREFIX}{name}/")
        return objects.upload_reviews(self._s3, sources, raw, bars)

    def require_common_folder(self) -> None:
        """One node alone has one, several the share of their topology."""
        nodes = sum(group.size for group in fleet.groups(self.deployment))
        if nodes > 1 and self.deployment.share is None:
            raise ShoalError(
                f"the {nodes} nodes of the deployment '{self.name}' have no folder in which all of them would find "
                "the words; write `share: nfs` or `share: efs` in the file of its topology "
                f"'{self.deployment.topology}', and deploy again"
            )

    def prepare(self, source: Source, config: TrainConfig, bars: Bars) -> DeploymentRun:
        prepared = source.prepare(self, config, bars)
        self._require_readable(config)
        self._require_paid(self.nodes(readers=prepared.readers > 0))
        launch = NodeLaunch(self.deployment, self._run_name(config))
        if config.resume:
            prepared = prepared.resumed(launch.request_before)
        return DeploymentRun(launch, prepared, config, wishes=self.wishes)

    def _require_paid(self, nodes: Sequence[Node]) -> None:
        """Raise ShoalError where nothing would be left for a training after its nodes have started."""
        if (most := self.wishes.max_dollars) is None:
            return
        if (hourly := self.hourly(nodes)) is None:
            raise ShoalError(needs_prices(str(self.deployment.session.region_name)))
        if (starts := NODES_START.middle / 3600 * hourly) >= most:
            raise ShoalError(
                f"{self.deployment.limit_of(most)}, but only to start the nodes costs about ${starts:.2f}; give a "
                "higher --max-dollars"
            )

    def nodes(self, *, readers: bool = False) -> list[Node]:
        """All of its groups that train, and with `readers` of those that read. Raises ShoalError where it has none."""
        groups = scaling_groups(self.deployment, readers=readers)
        found = [(each.node_group, each.instance_types) for each in groups]
        return [node for group, types in found for node in group_nodes(types, group.size, group.gpus, group.efa)]

    def hourly(self, nodes: Sequence[Node]) -> float | None:
        """As `Spending` counts."""
        try:
            prices = catalog.prices(str(self.deployment.session.region_name))
            return sum(cost.training_node(node.instance_type, prices) for node in nodes)
        except TopologyError:
            return None


class _NodesTraining(BegunTraining):
    def __init__(self, deployment: Deployment, request: RunRequest, end: RunEnd | None) -> None:
        """`end`: how it has ended, when the request was read."""
        super().__init__(deployment, request.run)
        self._end = end
        self.is_endless = request.stream is not None and request.stream.follow
        self.is_stopping = request.stop
        self._launch = NodeLaunch(deployment, request.run)
        self._launch.follow(request)

    @property
    def options(self) -> Mapping[str, tuple[str, ...]]:
        return self._launch.request.options

    @property
    def has_ended(self) -> bool:
        return self._end is not None

    def status(self, reports: Reports) -> WantedRun:
        launch, attempts = self._launch, self._launch.attempts()
        if end := self._end:
            return WantedRun(run=self.name, state=end.outcome, error=end.error, attempts=attempts, outlook=None)
        state = "running" if launch.request.ready else "starting"
        return WantedRun(run=self.name, state=state, error="", attempts=attempts, outlook=self._outlook(reports))

    def _outlook(self, reports: Reports) -> Outlook:
        launch, attempts, nodes = self._launch, self._launch.attempts(), fleet.nodes(self.deployment)
        # Nodes that ran before the launch count from its first attempt.
        ran_before = any(node.launched < launch.began for node in nodes)
        since = launch.first_attempt_at() if ran_before else launch.began
        cost = Spending(region=str(self.deployment.session.region_name), since=since or datetime.now(UTC))
        first = reports.get(attempts[-1].members[0].instance) if attempts else None
        told = first if isinstance(first, NodeStatus) else None
        return outlook(launch.request, attempts, told, nodes if since else (), cost)

    def stop(self, bars: Bars) -> tuple[str, str]:
        """Also scale its nodes to zero unless they are to stay or are wanted for another run."""
        launch, groups = self._launch, fleet.groups(self.deployment, readers=True)
        if (end := launch.end()) is not None:
            return end.outcome, end.error
        bars.stage("stop", 0)
        if not (launch.is_wanted() and launch.request.ready and any(group.desired for group in groups)):
            launch.wanted.end_by_hand(launch.request)
            launch.forget()
        else:
            launch.ask_to_stop()
        deadline = time.monotonic() + LONGEST_STOP_SECONDS
        while (end := launch.end()) is None and time.monotonic() < deadline:
            bars.tick()
            time.sleep(PAUSE_SECONDS)
        if end is None:
            with suppress(ShoalError):
                launch.forget()
        fleet.scale_to_zero(self.deployment, groups, unless=launch.keeps_nodes)
        if end is None:
            raise ShoalError(
                f"the nodes did not stop in time, so they are ended; what they wrote is in {launch.folder}"
            )
        return end.outcome, end.error

    def _run(self, config: TrainConfig, wishes: LaunchOptions) -> tuple[OnDeployment, DeploymentRun]:
        request = self._launch.request
        learnt: Prepared = PreparedDataset(str(request.dataset))
        if request.texts is not None:
            learnt = PreparedTexts(request.texts, tuple(each.address for each in request.texts.sources))
        elif request.stream is not None:
            learnt = PreparedStream(request.stream)
        return OnDeployment(self.deployment, wishes), DeploymentRun(self._launch, learnt, config, wishes=wishes)
