"""A deployment's GPU nodes as a place: what they can read, the datasets and runs in its bucket, and what they cost."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from bootstrap.aws import objects
from bootstrap.aws.account import credentials_warning
from bootstrap.aws.deployment import Deployment
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode
from bootstrap.nodes.scale_up import scaled_up
from bootstrap.nodes.scaling_group import scaling_groups
from bootstrap.progress import Bars
from bootstrap.training.places.bucket_place import InBucket
from bootstrap.training.places.deployment_run import DeploymentRun
from bootstrap.training.places.launch import NodeLaunch, queue_path, require_free
from bootstrap.training.places.managed_job import is_managed, jobs
from bootstrap.training.places.run_launch import DEFAULT, Wishes
from bootstrap.training.readers import count_readers
from bootstrap.training.sources.source import Source
from common.errors import ShoalError
from corpus.reading import s3
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Source as FileSource
from corpus.stream.stream_settings import is_socket
from experiments.forecast.estimate import Estimate
from experiments.forecast.nodes import NODES_START
from experiments.forecast.rates import Node
from infra import catalog, cost, topology
from infra.topology_error import TopologyError
from trainer.config import TrainConfig


class OnDeployment(InBucket):
    """The GPU nodes of a deployment."""

    pause = 1.0
    reads_s3_alone = True

    def __init__(
        self, deployment: Deployment, wishes: Wishes = DEFAULT, *, held: Sequence[GpuNode] | None = None
    ) -> None:
        """`held`: nodes that run already, and go on after a run, which then leaves nothing in the bucket."""
        super().__init__(deployment)
        self.wishes, self.held_nodes, self.shares = wishes, held, deployment.share is not None
        self.left: list[s3.S3Path] = []
        """What runs on held nodes leave in the bucket."""

    @property
    def readers(self) -> int:
        """One on each node that reads, or else on the first that trains."""
        return max(1, count_readers(self.deployment))

    def require_reads(self, address: str) -> None:
        """Nodes reach S3 alone, and of that what the topology names as its inputs."""
        if is_socket(address):
            raise ShoalError(
                f"the nodes of a deployment cannot reach {address}, as their network leads to S3 alone; have its "
                "sender write objects into a prefix there, and give that with --follow"
            )
        if not is_s3(address):
            raise ShoalError(
                f"{address} is on this machine, and the nodes of a deployment read text from S3 alone; upload it, such "
                "as by `aws s3 cp`, to an address within the `inputs` of the topology "
                f"'{self.deployment.topology}', and give that"
            )
        self.deployment.readable(address)

    @property
    def preprocesses(self) -> bool:
        """Whether its one node does all of the work."""
        return topology.OUTPUT_ON_NODE in self.deployment.outputs

    def uploaded(self, sources: tuple[FileSource, ...], name: str, bars: Bars) -> tuple[FileSource, ...]:
        """Into a folder of the raw bucket: a run that begins later must not find the files of another command there."""
        for source in sources:
            if is_s3(source.address):
                self.deployment.readable(source.address, topology.OUTPUT_RAW_BUCKET)
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
        """Upload what is here."""
        prepared = source.prepare(self, config, bars)
        self._require_readable(config)
        self._require_paid(self.nodes(readers=prepared.readers > 0))
        run = self._unfinished(bars) if config.resume else self._new_name()
        if is_managed(self.deployment) and any(jobs(self.deployment, run, at_work=True)):
            raise ShoalError(f"SageMaker trains {run}; add --managed")
        launch = NodeLaunch(self.deployment, run)
        if config.resume:
            prepared = prepared.resumed(launch.request_before)
        if self.held_nodes is not None:
            marks = s3.S3Path(self._bucket, f"{topology.FETCHED_PREFIX}{launch.run}.")
            self.left += [launch.folder, marks, queue_path(self.deployment)]
        return DeploymentRun(launch, prepared, config, wishes=self.wishes, held=self.held_nodes)

    def _require_paid(self, nodes: Sequence[Node]) -> None:
        """Raise ShoalError where nothing would be left for a training after its nodes have started."""
        if (most := self.wishes.max_dollars) is None:
            return
        starts = self.dollars(NODES_START, nodes)
        if starts is None:
            raise ShoalError(
                f"--max-dollars needs prices, and those of {self.deployment.session.region_name} are not known; "
                f"`make prices REGION={self.deployment.session.region_name}` makes a list of them"
            )
        if starts.middle >= most:
            raise ShoalError(
                f"{self.deployment.limit_of(most)}, but only to start the nodes costs about ${starts.middle:.2f}; give "
                "a higher --max-dollars"
            )

    def nodes(self, *, readers: bool = False) -> list[Node]:
        """All of its groups that train, and with `readers` of those that read; none where nodes are held. Raises
        ShoalError where it has none."""
        if self.held_nodes is not None:
            return []
        groups = scaling_groups(self.deployment, readers=readers)
        found = [(each.node_group, each.instance_type) for each in groups]
        return [Node(kind, group.gpus, group.efa) for group, kind in found for _ in range(group.size)]

    def dollars(self, seconds: Estimate, nodes: Sequence[Node]) -> Estimate | None:
        """As `Spending` counts."""
        try:
            prices = catalog.prices(str(self.deployment.session.region_name))
            return seconds.times(sum(cost.training_node(node.instance_type, prices) for node in nodes) / 3600)
        except TopologyError:
            return None

    def credentials_warning(self, seconds: float) -> str | None:
        """The nodes need none of them; only the command, to start and to follow them."""
        return credentials_warning(
            self.deployment.session,
            seconds,
            "the training",
            "once all nodes have booted they go on without them and end by themselves, but nobody here follows the "
            f"training; renew them, and follow it by: shoal attach {self.name}",
        )

    @contextmanager
    def held(self, bars: Bars) -> Iterator[Self]:
        """The next training would take a dataset that is left for the newest one, or resume a run that is left."""
        require_free(self.deployment)
        with scaled_up(self.deployment, bars) as nodes:
            place = type(self)(self.deployment, Wishes(keep=True, alone=True), held=nodes)
            try:
                yield place
            finally:
                for each in place.left:
                    objects.remove(self._s3, each)

    def _upload(self, path: Path, bars: Bars) -> str:
        before = objects.sizes(self._s3, s3.S3Path(self._bucket, topology.DATASETS_PREFIX))
        uploaded = s3.place_of(super()._upload(path, bars))
        if self.held_nodes is not None and uploaded.key not in before:
            self.left.append(uploaded)
        return str(uploaded)
