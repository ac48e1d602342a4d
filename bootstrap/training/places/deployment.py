"""A deployment's GPU nodes as a place: what they can read, the datasets and runs in its bucket, and what they cost."""

from collections.abc import Sequence

from bootstrap.aws import objects
from bootstrap.aws.deployment import Deployment
from bootstrap.nodes import fleet
from bootstrap.nodes.scaling_group import scaling_groups
from bootstrap.progress import Bars
from bootstrap.training.places.bucket_place import InBucket
from bootstrap.training.places.deployment_run import DeploymentRun
from bootstrap.training.places.launch import DEFAULT, LaunchOptions, NodeLaunch
from bootstrap.training.places.managed_job import is_managed, jobs
from bootstrap.training.readers import count_readers
from bootstrap.training.sources.source import Source
from common.errors import ShoalError
from corpus.reading import s3
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Source as FileSource
from experiments.forecast import NODES_START, Node, of_group
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

    def __init__(self, deployment: Deployment, wishes: LaunchOptions = DEFAULT) -> None:
        super().__init__(deployment)
        self.wishes, self.shares = wishes, deployment.share is not None

    @property
    def readers(self) -> int:
        """One on each node that reads, or else on the first that trains."""
        return max(1, count_readers(self.deployment))

    def require_reads(self, address: str) -> None:
        """Nodes reach S3 alone, and of that what the topology names as its inputs."""
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
        prepared = source.prepare(self, config, bars)
        self._require_readable(config)
        self._require_paid(self.nodes(readers=prepared.readers > 0))
        run = self._run_name(config)
        if is_managed(self.deployment) and any(jobs(self.deployment, run, at_work=True)):
            raise ShoalError(f"SageMaker trains {run}; add --managed")
        launch = NodeLaunch(self.deployment, run)
        if config.resume:
            prepared = prepared.resumed(launch.request_before)
        return DeploymentRun(launch, prepared, config, wishes=self.wishes)

    def _require_paid(self, nodes: Sequence[Node]) -> None:
        """Raise ShoalError where nothing would be left for a training after its nodes have started."""
        if (most := self.wishes.max_dollars) is None:
            return
        if (hourly := self.hourly(nodes)) is None:
            raise ShoalError(
                f"--max-dollars needs prices, and those of {self.deployment.session.region_name} are not known; "
                f"`make prices REGION={self.deployment.session.region_name}` makes a list of them"
            )
        if (starts := NODES_START.middle / 3600 * hourly) >= most:
            raise ShoalError(
                f"{self.deployment.limit_of(most)}, but only to start the nodes costs about ${starts:.2f}; give a "
                "higher --max-dollars"
            )

    def nodes(self, *, readers: bool = False) -> list[Node]:
        """All of its groups that train, and with `readers` of those that read. Raises ShoalError where it has none."""
        groups = scaling_groups(self.deployment, readers=readers)
        found = [(each.node_group, each.instance_types) for each in groups]
        return [node for group, types in found for node in of_group(types, group.size, group.gpus, group.efa)]

    def hourly(self, nodes: Sequence[Node]) -> float | None:
        """As `Spending` counts."""
        try:
            prices = catalog.prices(str(self.deployment.session.region_name))
            return sum(cost.training_node(node.instance_type, prices) for node in nodes)
        except TopologyError:
            return None
